//! One connection: handshake, dispatch of requests, end.

mod app_requests;
mod caller;
mod dispatch;
mod exec_requests;
mod fs_requests;
mod handshake;
mod link;
mod order;
mod params;
mod reply;
mod run;
mod scope;
mod scopes;

pub(crate) use caller::Caller;
pub(crate) use handshake::Handshake;
pub(crate) use link::ConnectionLink;
pub(crate) use order::Order;
pub(crate) use reply::{Reply, no_memory};
pub(crate) use run::run;
pub(crate) use scope::Scope;
