//! Listeners: WebSocket over TCP and over unix sockets.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream as StdUnixStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Listen;
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
    Unix(UnixListener, SocketFile),
}

/// The file of a unix socket. Removed on drop, unless another server replaced it.
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Listener {
    /// Binds a socket. Returns `None` for standard input and output.
    pub fn bind(listen: &Listen) -> Result<Option<Listener>, ListenError> {
        let endpoint = match listen {
            Listen::WebSocket(address) => bind_tcp(*address)?,
            Listen::Unix(path) => {
                remove_stale_socket(path)?;
                bind_private(path).map_err(|os| ListenError::Unix {
                    path: path.to_owned(),
                    os,
                })?
            }
            Listen::Stdio => return Ok(None),
        };
        Ok(Some(Listener { endpoint }))
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(_, address) => format!("ws://{address}"),
            Endpoint::Unix(_, file) => format!("unix://{}", file.path.display()),
        }
    }

    /// Accepts connections until the server shuts down.
    pub async fn serve(self, server: Server) {
        loop {
            let accepted = tokio::select! {
                () = server.state.ending.cancelled() => return,
                accepted = self.accept(&server.state) => accepted,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }

    async fn accept(&self, server: &Arc<ServerState>) -> io::Result<()> {
        match &self.endpoint {
            Endpoint::Tcp(listener, _) => {
                let (stream, from) = listener.accept().await?;
                tune(&stream, server.settings.unsent_bytes);
                http::accept(server, stream, Peer::Address(from.ip()));
            }
            Endpoint::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                if is_same_user(&stream) {
                    http::accept(server, stream, Peer::Owner);
                } else {
                    tracing::warn!("connection rejected: peer is another user");
                }
            }
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

/// Removes a socket file without a listener. Fails if the path is anything else.
fn remove_stale_socket(path: &Path) -> Result<(), ListenError> {
    let failed = |os| ListenError::Unix {
        path: path.to_owned(),
        os,
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match StdUnixStream::connect(path) {
        Ok(_) => Err(ListenError::SocketInUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Binds with mode 0600 from the start: creates the socket under a temporary name, sets its
/// mode, and renames it.
fn bind_private(path: &Path) -> io::Result<Endpoint> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let listener = UnixListener::bind(&temporary)?;
    let moved = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&temporary))
        .and_then(|metadata| fs::rename(&temporary, path).map(|()| metadata.ino()));
    let inode = moved.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    let path = path.to_owned();
    Ok(Endpoint::Unix(listener, SocketFile { path, inode }))
}

/// Returns whether the peer runs as the server's user.
fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "removing the socket failed");
        }
    }
}
