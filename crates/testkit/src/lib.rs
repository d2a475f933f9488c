//! Shared test support: a server process, a protocol client, a faulty link, misbehaving programs.
//!
//! Nothing here depends on the server's crates. The client implements the wire protocol a second
//! time, from its description, so that a mistake in one is not repeated in the other.
//!
//! - [`ServerCommand`] starts the built binary; [`Server`] is a running server, [`CommandOutput`]
//!   the result of a command that exited; [`Transport`] is how a server is reached
//! - [`Client`] is one connection; it keeps everything received in wire order. [`EventLog`] is the
//!   events of one process
//! - [`Start`] builds `process/start` params, [`programs`] are misbehaving shell scripts
//! - [`TestTag`] finds every process a test started; a dropped [`Server`] checks that none is left
//! - [`FaultyLink`] is a TCP proxy that can be cut, stalled, half-closed and throttled
//! - [`reconnecting`] has a client that resumes its session after every cut and verifies the
//!   output, often [`SequenceCheck`]
//! - [`TestUser`] has its own runtime directory, for commands that use the per-user server
//! - [`http_client`] sends plain HTTP requests, [`frames`] builds WebSocket frames
//! - [`RawWebSocket`] is a connection for incomplete messages and unread answers
//! - [`ScriptedServer`] answers requests as a test says; [`http_test_server`] is a scripted HTTP server
//! - [`mcp_server`] has an MCP server with a cancellable tool, and a recorder of a server's input
//! - [`deadline`] has the waits with their deadlines
//!
//! Failures are panics, since the callers are tests.

mod capture;
mod client;
mod counted_lines;
pub mod deadline;
mod event_log;
mod faulty_link;
pub mod frames;
pub mod http_client;
pub mod http_test_server;
pub mod mcp_server;
mod proc_stats;
pub mod programs;
mod raw_websocket;
pub mod reconnecting;
mod scripted_server;
mod server;
mod server_command;
mod start;
mod test_tag;
mod test_user;

pub use client::{CallError, Client, ConnectionEnd, OutputCount, Received, RpcError};
pub use counted_lines::SequenceCheck;
pub use event_log::{Event, EventLog};
pub use faulty_link::{Direction, FaultyLink};
pub use proc_stats::ProcStats;
pub use raw_websocket::RawWebSocket;
pub use scripted_server::ScriptedServer;
pub use server::Server;
pub use server_command::{CommandOutput, RunningCommand, ServerCommand, Transport};
pub use start::{Start, base64, file_uri, sh, unbase64};
pub use test_tag::TestTag;
pub use test_user::TestUser;
