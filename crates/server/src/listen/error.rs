//! Errors of binding a listener.

use std::{io, net::SocketAddr, path::PathBuf};

/// Error of binding a listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is reachable from the network, where anyone could run programs.
    #[error(
        "refusing to listen on {0}: it is not a loopback address, and this version has no authentication; \
         use ws://127.0.0.1:PORT or unix:///path, and reach it from elsewhere through ssh"
    )]
    NotLoopback(SocketAddr),
    /// The port is in use.
    #[error("cannot listen on ws://{0}: the port is in use; choose another one, or 0 for any")]
    PortInUse(SocketAddr),
    /// The OS rejected the address.
    #[error("cannot listen on ws://{address}: {os}")]
    Tcp {
        /// The requested address.
        address: SocketAddr,
        /// The OS error.
        os: io::Error,
    },
    /// Another server listens on the socket.
    #[error("cannot listen on unix://{0}: another server is already listening there")]
    SocketInUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("cannot listen on unix://{0}: the path exists and is not a socket")]
    NotASocket(PathBuf),
    /// The OS rejected the path.
    #[error("cannot listen on unix://{path}: {os}")]
    Unix {
        /// The requested path.
        path: PathBuf,
        /// The OS error.
        os: io::Error,
    },
}
