//! Listeners, connections and the wire dialects.
//!
//! # Theory of operation
//!
//! A [`Listener`] accepts byte streams. Over HTTP it answers health probes and upgrades to
//! WebSocket. Each stream becomes a connection with two tasks: one reads messages in the
//! order of the wire, one writes. The reading task checks the handshake, parses params and
//! puts each request into its lane; a request that does not have to wait is answered in
//! that task. A dialect translates params into an engine call, and the events of a process
//! into notifications. Its only state is a cursor per process.
//!
//! When a connection ends, its session is detached, and the engine's lease decides how long
//! it lives. The processes of three dialects (`spawn`, `command`, `v0`) belong to the
//! connection instead: they live in private sessions that end with it.

mod connection;
mod connection_places;
mod convert;
mod dialects;
mod file_threads;
mod host;
mod host_header;
mod http;
mod listen;
mod server;
mod settings;

pub use host::Host;
pub use listen::{Listen, ListenError, Listener, ParseListenError};
/// The identity of the peer of a connection.
pub use outpost_engine::Peer;
/// The wire protocol as JSON Schema.
pub use outpost_protocol::schema;
/// The types of [`Host::configuration`].
pub use outpost_protocol::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource};
pub use server::{ConnectionEnd, Server};
pub use settings::Settings;
