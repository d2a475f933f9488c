//! How a server is reached.

use std::{future::Future, io, pin::Pin, sync::Arc};

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
    tls,
};

/// A byte stream to a server, ready for messages.
pub struct Transport {
    pub(super) read: ReadHalf,
    pub(super) write: WriteHalf,
    pub(super) framing: Framing,
    /// What was read already, with the answer to the upgrade.
    pub(super) early: Bytes,
    /// The server itself, if it was launched for this.
    pub(super) child: Option<Child>,
}

impl Transport {
    /// WebSocket frames, after the opening handshake.
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

    /// One message a line.
    #[must_use]
    pub fn lines(read: ReadHalf, write: WriteHalf) -> Self {
        Transport {
            framing: Framing::Lines,
            ..Transport::websocket(read, write)
        }
    }
}

/// Why a server can't be reached. The text has everything, so there is no source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL can't be used.
    #[error("not a usable URL: {0}")]
    Url(&'static str),
    /// Nobody is there, or nobody answers.
    #[error("{0}")]
    Connect(io::Error),
    /// The other side can't be trusted, or doesn't speak TLS.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// There is no WebSocket there.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The command of the server can't be executed.
    #[error("cannot launch the server: {0}")]
    Launch(io::Error),
    /// A launched server is there once.
    #[error("a launched server can't be reached a second time")]
    Spent,
}

impl DialError {
    /// Whether nobody listens there, or whoever did was just leaving.
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

    /// Whether trying again is pointless.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            DialError::Url(_) | DialError::Launch(_) | DialError::Spent => true,
            DialError::Opening(OpeningError::Refused(status)) => *status < 500,
            DialError::Connect(_) | DialError::Tls(_) | DialError::Opening(_) => false,
        }
    }
}

/// A way to a server, which may be gone again and again.
pub trait Dialer: Send + Sync {
    /// Makes a new connection.
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>>;

    /// Whether a second connection would reach the same server.
    fn redials(&self) -> bool {
        true
    }

    /// What it is called in errors, without anything that may be a secret.
    fn name(&self) -> String;
}

/// Dials a URL.
pub(super) struct UrlDialer {
    pub(super) url: String,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
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
                    let authority = match host.contains(':') {
                        true => format!("[{host}]:{port}"),
                        false => format!("{host}:{port}"),
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
