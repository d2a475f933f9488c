//! Remote executor: processes, files and HTTP on a server.
//!
//! - [`executor`]: [`RemoteExecutor`], configured by [`options`]
//! - [`connection`]: one transport: dialing, TLS, handshake, request/response pairing
//! - [`session`]: state that outlives a connection: current connection, calls, generated ids
//! - [`reconnector`]: replaces a lost connection and resumes the session (state machine in
//!   [`recovery`])
//! - [`process_table`]: every process of the session; assembles events in order, sends acks, and
//!   tracks orphaned starts and unclaimed processes. [`notifications`] feeds it
//! - [`peek`]: reads a process without following it
//! - [`file_backend`], [`block_reader`], [`block_writer`], [`file_handle`]: files on the server's
//!   host
//! - [`http`], [`http_bodies`]: HTTP requests from the server's host

mod block_reader;
mod block_writer;
mod connection;
mod executor;
mod file_backend;
mod file_handle;
mod http;
mod http_bodies;
mod notifications;
mod options;
mod peek;
mod process_table;
mod reconnector;
mod recovery;
mod session;

pub use connection::{
    address::public_address,
    dial::{DialError, Dialer, Transport},
    tls::TlsConfig,
};
pub use executor::RemoteExecutor;
pub use options::{DeliveryMode, Lease, RemoteLimits, RemoteOptions};
pub use peek::ProcessPeek;
pub use session::{ConnectionState, ReconnectFailure};
