//! Remote executor: processes, files and HTTP on a server.
//!
//! - [`executor`]: [`RemoteExecutor`], configured by [`options`]
//! - [`connection`]: one transport: dialing, TLS, request/response pairing, the receiver of events
//! - [`session`]: state that outlives a connection: current connection, calls, generated ids
//! - [`reconnector`]: opens the session, and replaces a lost connection and resumes the session
//!   (decisions in [`recovery`])
//! - [`process_table`]: every process of the session; assembles events in order, sends acks, and
//!   tracks orphaned starts and unclaimed processes
//! - [`process`]: operations on one process
//! - [`files`], [`block_reader`], [`watches`]: files on the server's host
//! - [`token`]: bearer tokens and secret files
//! - [`http`]: HTTP requests from the server's host

mod block_reader;
mod connection;
mod executor;
mod files;
mod http;
mod options;
mod process;
mod process_table;
mod reconnector;
mod recovery;
mod session;
mod token;
mod watches;

pub use connection::{
    dial::{Dialer, Transport, check_url, public_address},
    dial_error::DialError,
    tls::{Fingerprint, InvalidFingerprint, TlsConfig, TlsError, TlsOptions},
};
pub use executor::RemoteExecutor;
pub use options::{DeliveryMode, Lease, RemoteLimits, RemoteOptions};
pub use process::ProcessPeek;
pub use session::{ConnectionState, ReconnectFailure};
pub use token::{BearerToken, SecretError};
