//! The dialects whose processes belong to a connection.
//!
//! - `spawn`, `command`, `v0`: the dialects
//! - `connection_session`: the processes of a dialect; `dialect`: the error texts and rules that two share
//! - `process_reporter`: reports output and exit; `stream_cap`: the output cap of a stream

pub(crate) mod command;
mod connection_session;
mod dialect;
mod process_reporter;
pub(crate) mod spawn;
mod stream_cap;
pub(crate) mod v0;

pub(crate) use connection_session::{ConnectionSession, ConnectionSessions, ProcessIdSpace};
