//! Listeners: WebSocket over TCP and over unix sockets.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    time::MissedTickBehavior,
};

use super::{Listen, Tls, unix_socket::UnixSocket};
use crate::{Server, Settings, auth::Client, http, server::ServerState};

/// Delay after a failed accept. Without descriptors or memory the next accept would fail at
/// once, in a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Error of binding a listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is reachable from the network, where anyone could run programs.
    #[error(
        "refusing to listen on {0} without authentication; add --ws-auth, --tokens-file or \
         --tls-client-ca, or listen on a loopback address or a unix socket"
    )]
    NoAuthentication(SocketAddr),
    /// The address is reachable from the network, where tokens and output could be read.
    #[error(
        "refusing to listen on {0} without TLS; use wss:// with --tls-cert and --tls-key or with \
         --tls-self-signed, or --plaintext-behind-proxy if a proxy adds TLS"
    )]
    NoTls(SocketAddr),
    /// A `wss://` address without a certificate.
    #[error(
        "cannot listen on wss://{0} without a certificate; add --tls-cert and --tls-key, or --tls-self-signed"
    )]
    NoCertificate(SocketAddr),
    /// The port is in use.
    #[error("cannot listen on {0}: the port is in use; choose another one, or 0 for any")]
    PortInUse(Listen),
    /// The OS rejected the address.
    #[error("cannot listen on {address}: {os}")]
    Tcp {
        /// The requested address.
        address: Listen,
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

/// The socket of a listener.
enum Endpoint {
    Tcp(TcpListener, SocketAddr, Option<Arc<Tls>>),
    Unix(UnixSocket),
}

impl Listener {
    /// Binds a socket. Returns `None` for standard input and output.
    pub fn bind(listen: &Listen, settings: &Settings) -> Result<Option<Listener>, ListenError> {
        let endpoint = match listen {
            Listen::WebSocket(address) => {
                if !address.ip().is_loopback() {
                    if !settings.auth.settings().needs_token() {
                        return Err(ListenError::NoAuthentication(*address));
                    }
                    if !settings.plaintext_behind_proxy {
                        return Err(ListenError::NoTls(*address));
                    }
                }
                bind_tcp(*address, None)?
            }
            Listen::SecureWebSocket(address) => {
                let tls = settings.tls.clone();
                let tls = tls.ok_or(ListenError::NoCertificate(*address))?;
                let authenticates =
                    settings.auth.settings().needs_token() || tls.verifies_clients();
                if !address.ip().is_loopback() && !authenticates {
                    return Err(ListenError::NoAuthentication(*address));
                }
                bind_tcp(*address, Some(tls))?
            }
            Listen::Unix(path) => Endpoint::Unix(UnixSocket::bind(path)?),
            Listen::Stdio => return Ok(None),
        };
        Ok(Some(Listener { endpoint }))
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(_, address, None) => format!("ws://{address}"),
            Endpoint::Tcp(_, address, Some(_)) => format!("wss://{address}"),
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

    /// Binds a unix socket again if its file was removed. Returns whether clients can reach the socket,
    /// and logs each change.
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
                    tracing::warn!(%error, "socket file was removed; cannot bind it again, retrying");
                }
                false
            }
        }
    }

    async fn accept(&self, server: &Arc<ServerState>) -> io::Result<()> {
        match &self.endpoint {
            Endpoint::Tcp(listener, _, tls) => {
                let (stream, from) = listener.accept().await?;
                tune(&stream, server.settings.unsent_bytes);
                let client = Client::Tcp {
                    client: from,
                    server: stream.local_addr()?,
                    encrypted: tls.is_some(),
                    certificate: None,
                };
                match tls {
                    None => http::accept(server, stream, client),
                    Some(tls) => http::accept_tls(server, tls.acceptor(), stream, client),
                }
            }
            Endpoint::Unix(socket) => match socket.accept().await? {
                Some(stream) => http::accept(server, stream, Client::Owner),
                None => {
                    let reason = "peer is another user";
                    server.record_refusal(&Client::Owner, reason.into());
                    tracing::warn!("connection rejected: {reason}");
                }
            },
        }
        Ok(())
    }
}

fn bind_tcp(address: SocketAddr, tls: Option<Arc<Tls>>) -> Result<Endpoint, ListenError> {
    let is_secure = tls.is_some();
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Endpoint::Tcp(
            TcpListener::from_std(listener)?,
            address,
            tls,
        ))
    });
    bound.map_err(|os| {
        let address = match is_secure {
            true => Listen::SecureWebSocket(address),
            false => Listen::WebSocket(address),
        };
        match os.kind() {
            io::ErrorKind::AddrInUse => ListenError::PortInUse(address),
            _ => ListenError::Tcp { address, os },
        }
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
