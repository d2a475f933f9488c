//! One connection: its handshake, its requests, its end.

mod caller;
mod dispatch;
mod handshake;
mod link;
mod params;
mod reply;
mod run;

pub(crate) use caller::Caller;
pub(crate) use handshake::Handshake;
pub(crate) use link::ConnectionLink;
pub(crate) use reply::Reply;
pub(crate) use run::run;
