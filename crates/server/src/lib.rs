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

mod audit;
mod auth;
mod connection;
mod connection_limiter;
mod convert;
mod credential_reload;
mod dialects;
mod file_threads;
mod host;
mod host_header;
mod http;
mod http_sockets;
mod listen;
mod peer_memories;
mod server;
mod settings;
mod watch_limiter;

pub use audit::AuditLog;
pub use auth::{
    AddTokenError, AuthLoadError, AuthSettings, AuthSettingsError, Authenticator,
    DEFAULT_MAX_CLOCK_SKEW, JwksError, NamedToken, PRIVATE_SETTINGS, ParseTokenHashError,
    PrincipalLimits, PrincipalSettings, Principals, Root, SecretFileError, TokenFile,
    TokenFileError, TokenHash, WebSocketAuth, read_secret_file,
};
pub use host::Host;
pub use listen::{
    Listen, ListenError, Listener, ParseListenError, Tls, TlsError, TlsFiles, certificate_validity,
};
/// The identity of the peer of a connection.
pub use outpost_engine::Peer;
/// The wire protocol as JSON Schema.
pub use outpost_protocol::schema;
/// The types of [`Host::configuration`].
pub use outpost_protocol::{
    AccessScope, ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource,
};
pub use server::{ConnectionEnd, Server};
pub use settings::Settings;
