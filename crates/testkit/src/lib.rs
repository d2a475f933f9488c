//! What tests share: a server, a client, a link that can be cut, programs that misbehave.
//!
//! Nothing in here knows the server's own crates: the wire is spoken a second time, from its
//! description, so that a mistake in the one isn't repeated by the other.
//!
//! - [`Launch`] says how the built binary is to be started, [`Server`] is one that runs and
//!   [`Ended`] one that has ended by itself; [`Transport`] is how it is reached
//! - [`Client`] is one connection: what it has sent is answered, what it has received is kept in
//!   the order of the wire; [`Story`] is what was heard of one process
//! - [`Start`] says what to start, [`programs`] has those that misbehave
//! - [`Mark`] finds what a test started, wherever it went; a server that goes out of scope has to
//!   leave nothing that carries its mark
//! - [`Link`] is a connection between the two that can be cut, stalled, half-closed and throttled
//! - [`steadfast`] has a client that comes back after every cut, and checks what it gets
//!   (what it gets is often [`CountedLines`], of which every byte can be told)
//! - [`Home`] is a runtime directory of its own, for commands that use the server of their user
//! - [`http`] asks without a WebSocket, [`frames`] are what one is made of
//! - [`web`] is what requests are made to: a server that says what it is told to
//! - [`mcp`] has an MCP server to call off, and a way to listen to what one is told
//! - [`patience`] holds the deadlines, all of them generous: a test waits for events, and a
//!   deadline is only there to end one that fails
//!
//! What goes wrong in here is a panic with all that is known, since its callers are tests.

mod capture;
mod client;
mod counted_lines;
pub mod frames;
mod home;
pub mod http;
mod launch;
mod link;
mod mark;
pub mod mcp;
pub mod patience;
pub mod programs;
mod server;
mod start;
pub mod steadfast;
mod story;
mod vitals;
pub mod web;

pub use client::{Client, Counted, Goodbye, RpcError, Seen};
pub use counted_lines::CountedLines;
pub use home::{Home, Watched};
pub use launch::{Ended, Launch, Transport};
pub use link::{Direction, Link};
pub use mark::Mark;
pub use server::Server;
pub use start::{Start, base64, file_uri, sh, unbase64};
pub use story::{Event, Story};
pub use vitals::Vitals;
