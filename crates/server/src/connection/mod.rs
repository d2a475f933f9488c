//! One connection: handshake, dispatch of requests, end.
//!
//! - `run`: the task that reads; `shared`: the state that requests and the session share
//! - `dispatch`: messages, handshake and admission; `requests`: the table of methods
//! - `order`: the order of requests about a process; `reply`: the response to a request

mod dispatch;
mod handshake;
mod order;
mod reply;
mod requests;
mod run;
mod shared;

pub(crate) use handshake::Handshake;
pub(crate) use order::Order;
pub(crate) use reply::{Reply, no_memory};
pub(crate) use run::run;
pub(crate) use shared::{Caller, Connection};
