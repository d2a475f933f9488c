//! Opens transports to servers by URL.

use std::{future::Future, net::IpAddr, path::PathBuf, pin::Pin};

use bytes::Bytes;
use outpost_rpc::{
    Framing, ReadHalf, Role, WriteHalf,
    ws::{UpgradeError, UpgradeRequest, open},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    net::{TcpStream, UnixStream},
    process::Child,
};

use super::{
    dial_error::{DialError, FORBIDDEN, UNAUTHORIZED},
    tls::{self, TlsConfig},
    tls_errors::rustls_error,
};
use crate::remote::token::BearerToken;

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

/// Opens connections to a server: the first connection and each replacement.
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
    /// Read again for each connection.
    pub(crate) token: Option<BearerToken>,
}

impl Dialer for UrlDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            let address = Address::parse(&self.url)?;
            let Some(source) = &self.token else {
                return self.open(address, None).await;
            };
            if let Some(host) = address.exposed_host() {
                let host = host.to_owned();
                return Err(DialError::Unencrypted { host });
            }
            let token = source.read()?;
            let opened = self.open(address, Some(&token)).await;
            opened.map_err(|mut error| {
                if let DialError::Unauthorized {
                    status: UNAUTHORIZED,
                    replaceable,
                    ..
                } = &mut error
                {
                    *replaceable = source.is_file();
                }
                error
            })
        })
    }

    fn name(&self) -> String {
        public_address(&self.url)
    }
}

impl UrlDialer {
    async fn open(&self, address: Address, token: Option<&str>) -> Result<Transport, DialError> {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                let stream = stream.map_err(DialError::Connect)?;
                upgrade(stream, "localhost", "/", token).await
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
                    return upgrade(stream, &authority, &path, token).await;
                }
                // The name of a loopback host may resolve to anything.
                let peer = stream.peer_addr().map_err(DialError::Connect)?;
                if token.is_some() && !is_loopback(peer.ip()) {
                    return Err(DialError::Unencrypted { host });
                }
                upgrade(stream, &authority, &path, token).await
            }
        }
    }
}

/// Performs the WebSocket handshake on a stream.
pub(super) async fn upgrade<S>(
    mut stream: S,
    host: &str,
    path: &str,
    bearer_token: Option<&str>,
) -> Result<Transport, DialError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = UpgradeRequest {
        host,
        path,
        bearer_token,
    };
    let early = open(&mut stream, request)
        .await
        .map_err(|error| match error {
            UpgradeError::Rejected {
                status: status @ (UNAUTHORIZED | FORBIDDEN),
                reason,
            } => DialError::Unauthorized {
                status,
                reason,
                had_token: bearer_token.is_some(),
                replaceable: false,
            },
            // With TLS 1.3, a server refuses a missing client certificate after the handshake.
            UpgradeError::Io(error) if rustls_error(&error).is_some() => DialError::Tls(error),
            error => error.into(),
        })?;
    let (read, write) = split(stream);
    Ok(Transport {
        early,
        ..Transport::websocket(Box::new(read), Box::new(write))
    })
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
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
                .ok()
                .filter(|port| *port > 0)
                .ok_or(DialError::Url("the port is not a number from 1 to 65535"))?,
        };
        Ok(Address::Tcp {
            host: host.to_owned(),
            port,
            path,
            tls,
        })
    }
}

impl Address {
    /// Returns the host of a connection that others on the network can read.
    fn exposed_host(&self) -> Option<&str> {
        let Address::Tcp {
            host, tls: false, ..
        } = self
        else {
            return None;
        };
        let loopback = host.parse().map_or_else(
            |_| host.eq_ignore_ascii_case("localhost"),
            |ip: IpAddr| is_loopback(ip),
        );
        (!loopback).then_some(host)
    }
}

/// Checks the URL of a server, without connecting: `ws://HOST[:PORT][/PATH]`, `wss://HOST[:PORT][/PATH]` or
/// `unix:///PATH`.
///
/// # Errors
/// With [`DialError::Url`].
pub fn check_url(url: &str) -> Result<(), DialError> {
    Address::parse(url).map(drop)
}

/// Removes the parts of a server URL that may be secret: user, query and fragment.
#[must_use]
pub fn public_address(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = authority.ends_with(']') || port.is_none_or(is_number);
    match (authority.rsplit_once('@'), rest.rsplit_once('@')) {
        (Some((_, host)), _) => format!("{scheme}://{host}{path}"),
        // A password that contains a slash.
        (None, Some((_, host))) if !is_host => format!("{scheme}://{host}"),
        _ => url.to_owned(),
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
    fn tokens_go_to_loopback_or_encrypted_hosts_only() {
        let exposed = |url| {
            let address = Address::parse(url).unwrap();
            address.exposed_host().map(str::to_owned)
        };
        for url in [
            "ws://127.0.0.1:1",
            "ws://127.9.9.9",
            "ws://[::1]:1",
            "ws://[::ffff:127.0.0.1]:1",
            "ws://LocalHost:1",
            "wss://build",
            "unix:///run/s",
        ] {
            assert_eq!(exposed(url), None, "{url}");
        }
        for (url, host) in [
            ("ws://build:1", "build"),
            ("ws://10.0.0.7", "10.0.0.7"),
            ("ws://[2001:db8::1]:1", "2001:db8::1"),
            ("ws://localhost.example", "localhost.example"),
            ("ws://127.0.0.1.example", "127.0.0.1.example"),
        ] {
            assert_eq!(exposed(url), Some(host.to_owned()), "{url}");
        }
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
            "ws://h:0",
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
