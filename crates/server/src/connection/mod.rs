//! One connection: handshake, dispatch of requests, end.
//!
//! - `run`: the task that reads; `shared`: the state that requests and the session share
//! - `dispatch`: messages, handshake and admission; `requests`: the table of methods
//! - `unparsed_request`: a request before its params are parsed
//! - `handshake`: its state; `reply`: the response to a request

mod dispatch;
mod handshake;
mod reply;
mod requests;
mod run;
mod shared;
mod unparsed_request;

pub(crate) use handshake::Handshake;
pub(crate) use reply::{Reply, no_memory};
pub(crate) use run::run;
pub(crate) use shared::{Caller, Connection};
