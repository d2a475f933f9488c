//! Listeners, connections, and the faces that the engine shows on the wire.
//!
//! # Theory of operation
//!
//! A [`Listener`] accepts byte streams and, where the transport is HTTP, answers
//! probes and upgrades to WebSocket. Each stream becomes a connection: one task
//! reads messages in the order of the wire, one writes. The reading task walks
//! the handshake, parses params, and hands each request to its lane; what needs
//! no waiting is answered on the spot. A face turns params into a call of the
//! engine and events of a process into notifications; it holds no state of its
//! own beyond a cursor.
//!
//! When a connection ends its session is detached, not ended: the engine decides
//! what becomes of it. Three faces (`spawn`, `command`, `v0`) have processes that
//! belong to the connection: they are in private sessions, which end with it.

mod connection;
mod convert;
mod faces;
mod host;
mod http;
mod listen;
mod server;
mod settings;

pub use host::Host;
pub use listen::{Listen, ListenError, Listener, ParseListenError};
/// The wire as JSON Schema.
pub use outpost_protocol::schema;
/// The words of [`Host::configuration`].
pub use outpost_protocol::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource};
pub use server::{Parting, Peer, Server};
pub use settings::Settings;
