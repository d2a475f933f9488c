//! Opens transports to servers: by URL, or by launching one.

use std::{future::Future, io, path::PathBuf, pin::Pin, process::Stdio};

use bytes::Bytes;
use outpost_rpc::{
    Framing, ReadHalf, Role, WriteHalf,
    ws::{UpgradeError, UpgradeRequest, open},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    net::{TcpStream, UnixStream},
    process::{Child, Command},
};

use super::tls::{self, TlsConfig};

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
    UpgradeRequest(#[from] UpgradeError),
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
    pub fn is_not_listening(&self) -> bool {
        match self {
            DialError::Connect(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ),
            DialError::UpgradeRequest(UpgradeError::Io(_)) => true,
            _ => false,
        }
    }

    /// Whether a retry would fail as well.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            DialError::Url(_) | DialError::Launch(_) | DialError::Spent => true,
            DialError::UpgradeRequest(UpgradeError::Rejected(status)) => *status < 500,
            DialError::Connect(_) | DialError::Tls(_) | DialError::UpgradeRequest(_) => false,
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
    let early = open(&mut stream, UpgradeRequest { host, path }).await?;
    let (read, write) = split(stream);
    Ok(Transport {
        early,
        ..Transport::websocket(Box::new(read), Box::new(write))
    })
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Tcp {
        host: String,
        port: u16,
        path: String,
        tls: bool,
    },
    Unix(PathBuf),
}

impl Address {
    /// Parses `ws://HOST[:PORT][/PATH]`, `wss://HOST[:PORT][/PATH]` or `unix:///PATH`.
    fn parse(url: &str) -> Result<Self, DialError> {
        let (scheme, rest) = url.split_once("://").ok_or(DialError::Url(
            "it does not begin with ws://, wss:// or unix://",
        ))?;
        let tls = match scheme {
            "ws" => false,
            "wss" => true,
            "unix" if rest.starts_with('/') => return Ok(Address::Unix(rest.into())),
            "unix" => return Err(DialError::Url("the path of a unix socket must be absolute")),
            _ => return Err(DialError::Url("the scheme is not ws, wss or unix")),
        };
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('/') => (&rest[..at], rest[at..].to_owned()),
            Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
            None => (rest, "/".to_owned()),
        };
        if authority.contains('@') || path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(DialError::Url("it contains a user name or whitespace"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest
                    .split_once(']')
                    .ok_or(DialError::Url("a bracket is not closed"))?;
                (host, after.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(DialError::Url("the host is missing"));
        }
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(port) => port
                .parse()
                .map_err(|_| DialError::Url("the port is not a number"))?,
        };
        Ok(Address::Tcp {
            host: host.to_owned(),
            port,
            path,
            tls,
        })
    }
}

/// Removes the parts of a server URL that may be secret: user, query and fragment.
#[must_use]
pub fn public_address(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

/// Launches a command once. The server ends with its streams, so it can't be dialed again.
pub(crate) struct LaunchDialer {
    program: String,
    command: Mutex<Option<Command>>,
}

impl LaunchDialer {
    pub(crate) fn new(command: std::process::Command) -> Self {
        LaunchDialer {
            program: command.get_program().to_string_lossy().into_owned(),
            command: Mutex::new(Some(command.into())),
        }
    }

    fn launch(&self) -> Result<Transport, DialError> {
        let mut command = self.command.lock().take().ok_or(DialError::Spent)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Fallback: the receiver gives it time to end by itself first.
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(DialError::Launch)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped");
        };
        Ok(Transport {
            child: Some(child),
            ..Transport::lines(Box::new(stdout), Box::new(stdin))
        })
    }
}

impl Dialer for LaunchDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        let launched = self.launch();
        Box::pin(async move { launched })
    }

    fn redials(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        self.program.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16, path: &str, tls: bool) -> Address {
        Address::Tcp {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            tls,
        }
    }

    #[test]
    fn urls_are_parsed() {
        let parsed = |url| Address::parse(url).unwrap();
        assert_eq!(
            parsed("ws://127.0.0.1:40123"),
            tcp("127.0.0.1", 40123, "/", false)
        );
        assert_eq!(parsed("ws://host"), tcp("host", 80, "/", false));
        assert_eq!(
            parsed("wss://host/a/b?c=d"),
            tcp("host", 443, "/a/b?c=d", true)
        );
        assert_eq!(parsed("ws://h:1?c"), tcp("h", 1, "/?c", false));
        assert_eq!(parsed("ws://[::1]:9/x"), tcp("::1", 9, "/x", false));
        assert_eq!(parsed("ws://[::1]"), tcp("::1", 80, "/", false));
        assert_eq!(parsed("unix:///run/s"), Address::Unix("/run/s".into()));
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for url in [
            "",
            "127.0.0.1:1",
            "http://h",
            "ws://",
            "ws://:1",
            "ws://h:x",
            "ws://h:99999",
            "ws://[::1",
            "ws://user@h",
            "ws://h/a\r\nEvil: 1",
            "unix://relative",
        ] {
            assert!(
                matches!(Address::parse(url), Err(DialError::Url(_))),
                "{url}"
            );
        }
    }
}
