//! Addresses to listen on, and bound listeners.

mod address;
mod listener;
mod tls;
mod unix_socket;

pub use address::{Listen, ParseListenError};
pub use listener::{ListenError, Listener};
pub use tls::{Tls, TlsError, TlsFiles, certificate_validity};
