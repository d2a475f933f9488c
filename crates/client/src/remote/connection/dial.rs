//! Opens transports to servers.

use std::{future::Future, io, pin::Pin};

use bytes::Bytes;
use outpost_rpc::{
    Framing, ReadHalf, Role, WriteHalf,
    ws::{Opening, OpeningError, open},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    net::{TcpStream, UnixStream},
    process::Child,
};

use super::{
    address::{Address, public_address},
    tls::{self, TlsConfig},
};

/// A byte stream to a server, ready for messages. Returned by a [`Dialer`].
pub struct Transport {
    pub(super) read: ReadHalf,
    pub(super) write: WriteHalf,
    pub(super) framing: Framing,
    /// Bytes that were read with the response to the WebSocket upgrade.
    pub(super) early: Bytes,
    /// The server, if it was launched for this connection.
    pub(super) child: Option<Child>,
}

impl Transport {
    /// Creates a transport of WebSocket frames, after the opening handshake.
    #[must_use]
    pub fn websocket(read: ReadHalf, write: WriteHalf) -> Self {
        Transport {
            read,
            write,
            framing: Framing::WebSocket(Role::Client),
            early: Bytes::new(),
            child: None,
        }
    }

    /// Creates a transport with one message per line.
    #[must_use]
    pub fn lines(read: ReadHalf, write: WriteHalf) -> Self {
        Transport {
            framing: Framing::Lines,
            ..Transport::websocket(read, write)
        }
    }
}

/// Why a server can't be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL is invalid.
    #[error("invalid URL: {0}")]
    Url(&'static str),
    /// The connection could not be opened.
    #[error("{0}")]
    Connect(io::Error),
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The WebSocket handshake failed.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The server could not be launched.
    #[error("cannot launch the server: {0}")]
    Launch(io::Error),
    /// The server was launched and has ended, so it can't be dialed again.
    #[error("a launched server can't be reached a second time")]
    Spent,
}

impl DialError {
    /// Whether no server listens at the address, or it was just shutting down.
    #[must_use]
    pub fn is_nobody_there(&self) -> bool {
        match self {
            DialError::Connect(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ),
            DialError::Opening(OpeningError::Io(_)) => true,
            _ => false,
        }
    }

    /// Whether a retry would fail as well.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            DialError::Url(_) | DialError::Launch(_) | DialError::Spent => true,
            DialError::Opening(OpeningError::Rejected(status)) => *status < 500,
            DialError::Connect(_) | DialError::Tls(_) | DialError::Opening(_) => false,
        }
    }
}

/// Opens connections to a server, the first one and each replacement.
pub trait Dialer: Send + Sync {
    /// Opens a connection.
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>>;

    /// Whether a second connection reaches the same server.
    fn redials(&self) -> bool {
        true
    }

    /// Names the server in errors. Must not contain secrets.
    fn name(&self) -> String;
}

/// Dials a URL.
pub(crate) struct UrlDialer {
    pub(crate) url: String,
    pub(crate) tls: Option<TlsConfig>,
}

impl Dialer for UrlDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            match Address::parse(&self.url)? {
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path).await;
                    upgrade(stream.map_err(DialError::Connect)?, "localhost", "/").await
                }
                Address::Tcp {
                    host,
                    port,
                    path,
                    tls,
                } => {
                    let stream = TcpStream::connect((host.as_str(), port)).await;
                    let stream = stream.map_err(DialError::Connect)?;
                    stream.set_nodelay(true).map_err(DialError::Connect)?;
                    let authority = if host.contains(':') {
                        format!("[{host}]:{port}")
                    } else {
                        format!("{host}:{port}")
                    };
                    if tls {
                        let stream = tls::connect(stream, &host, self.tls.clone()).await?;
                        upgrade(stream, &authority, &path).await
                    } else {
                        upgrade(stream, &authority, &path).await
                    }
                }
            }
        })
    }

    fn name(&self) -> String {
        public_address(&self.url)
    }
}

async fn upgrade<S>(mut stream: S, host: &str, path: &str) -> Result<Transport, DialError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let early = open(&mut stream, Opening { host, path }).await?;
    let (read, write) = split(stream);
    Ok(Transport {
        early,
        ..Transport::websocket(Box::new(read), Box::new(write))
    })
}
