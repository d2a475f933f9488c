//! Why a listener could not be had.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why a listener could not be had: what was tried, what went wrong, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Anybody on the network could run programs.
    #[error(
        "refusing to listen on {0}: it is not a loopback address, and this version has no authentication; \
         use ws://127.0.0.1:PORT or unix:///path, and reach it from elsewhere through ssh"
    )]
    NotLoopback(SocketAddr),
    /// Somebody else has the port.
    #[error("cannot listen on ws://{0}: the port is in use; choose another one, or 0 for any")]
    PortInUse(SocketAddr),
    /// The operating system refused the address.
    #[error("cannot listen on ws://{address}: {os}")]
    Tcp {
        /// What was tried.
        address: SocketAddr,
        /// What the OS said.
        os: io::Error,
    },
    /// A server is alive at that path.
    #[error("cannot listen on unix://{0}: another server is already listening there")]
    SocketInUse(PathBuf),
    /// Something that isn't a socket is in the way.
    #[error("cannot listen on unix://{0}: the path exists and is not a socket")]
    NotASocket(PathBuf),
    /// The operating system refused the path.
    #[error("cannot listen on unix://{path}: {os}")]
    Unix {
        /// What was tried.
        path: PathBuf,
        /// What the OS said.
        os: io::Error,
    },
}
