//! One connection: handshake, dispatch of requests, end.
//!
//! - `run`: the task that reads; `shared`: the state that requests and the session share
//! - `dispatch`: messages, handshake and admission; `notifications`: those of the client
//! - `requests`, `file_requests`, `watch_requests` and `discovery_requests`: the table of methods
//! - `unparsed_request`: a request before its params are parsed
//! - `bounds`: the sandbox, the roots and the limits of the principal
//! - `handshake`: its state; `reply`: the response to a request
//! - `policy_requests`: questions to the client

mod bounds;
mod discovery_requests;
mod dispatch;
mod file_requests;
mod handshake;
mod notifications;
mod policy_requests;
mod reply;
mod requests;
mod run;
mod shared;
mod unparsed_request;
mod watch_requests;

pub(crate) use handshake::Handshake;
pub(crate) use reply::Reply;
pub(crate) use run::run;
pub(crate) use shared::{Caller, Connection};
