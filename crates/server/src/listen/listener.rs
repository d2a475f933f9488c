//! Listeners: WebSocket over TCP and over unix sockets.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    time::MissedTickBehavior,
};

use super::{Listen, unix_socket::UnixSocket};
use crate::{Peer, Server, http, server::ServerState};

/// Delay after a failed accept. Without descriptors or memory the next accept would fail at
/// once, in a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

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

/// A bound listener. It accepts connections once it is served.
pub struct Listener {
    endpoint: Endpoint,
}

enum Endpoint {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixSocket),
}

impl Listener {
    /// Binds a socket. Returns `None` for standard input and output.
    pub fn bind(listen: &Listen) -> Result<Option<Listener>, ListenError> {
        let endpoint = match listen {
            Listen::WebSocket(address) => bind_tcp(*address)?,
            Listen::Unix(path) => Endpoint::Unix(UnixSocket::bind(path)?),
            Listen::Stdio => return Ok(None),
        };
        Ok(Some(Listener { endpoint }))
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(_, address) => format!("ws://{address}"),
            Endpoint::Unix(socket) => format!("unix://{}", socket.path().display()),
        }
    }

    /// Accepts connections until the server shuts down. A unix socket whose file was removed is
    /// bound again.
    pub async fn serve(mut self, server: Server) {
        let mut checks = tokio::time::interval(server.state.settings.socket_check_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reachable = true;
        loop {
            let accepted = tokio::select! {
                () = server.state.ending.cancelled() => return,
                accepted = self.accept(&server.state) => accepted,
                _ = checks.tick() => {
                    reachable = self.restore(reachable);
                    continue;
                }
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }

    /// Binds a unix socket again whose file was removed. Returns whether it can be reached, and logs
    /// each change.
    fn restore(&mut self, reachable: bool) -> bool {
        let Endpoint::Unix(socket) = &mut self.endpoint else {
            return true;
        };
        match socket.restore() {
            Ok(false) => true,
            Ok(true) => {
                tracing::warn!(path = %socket.path().display(), "bound the socket again: its file was removed");
                true
            }
            Err(error) => {
                if reachable {
                    tracing::warn!(%error, "cannot bind the socket again, whose file was removed; retrying");
                }
                false
            }
        }
    }

    async fn accept(&self, server: &Arc<ServerState>) -> io::Result<()> {
        match &self.endpoint {
            Endpoint::Tcp(listener, _) => {
                let (stream, from) = listener.accept().await?;
                tune(&stream, server.settings.unsent_bytes);
                http::accept(server, stream, Peer::from_address(from.ip()));
            }
            Endpoint::Unix(socket) => match socket.accept().await? {
                Some(stream) => http::accept(server, stream, Peer::Owner),
                None => tracing::warn!("connection rejected: peer is another user"),
            },
        }
        Ok(())
    }
}

fn bind_tcp(address: SocketAddr) -> Result<Endpoint, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Endpoint::Tcp(TcpListener::from_std(listener)?, address))
    });
    bound.map_err(|os| match os.kind() {
        io::ErrorKind::AddrInUse => ListenError::PortInUse(address),
        _ => ListenError::Tcp { address, os },
    })
}

/// Disables Nagle's algorithm, which delays small messages by 40 ms, and bounds the unsent
/// bytes in the send buffer, which cannot be overtaken by urgent messages.
fn tune(stream: &TcpStream, unsent_bytes: u32) {
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_notsent_lowat(unsent_bytes));
    if let Err(error) = tuned {
        tracing::debug!(%error, "setting socket options failed");
    }
}
