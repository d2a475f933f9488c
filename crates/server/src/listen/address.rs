//! Addresses of `--listen`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// WebSocket over TCP; port 0 picks a free port.
    WebSocket(SocketAddr),
    /// WebSocket over TLS; port 0 picks a free port.
    SecureWebSocket(SocketAddr),
    /// Lines on standard input and output.
    Stdio,
    /// WebSocket over a unix socket.
    Unix(PathBuf),
}

/// Error of parsing a [`Listen`] address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseListenError {
    /// Unknown form.
    #[error("expected ws://IP:PORT, wss://IP:PORT, unix:///absolute/path or stdio://")]
    Form,
    /// No IP address and port after `ws://` or `wss://`.
    #[error("expected an IP address and a port, as in ws://127.0.0.1:0")]
    Address,
    /// A relative path after `unix://`.
    #[error("expected an absolute path, as in unix:///run/outpost.sock")]
    RelativePath,
}

impl FromStr for Listen {
    type Err = ParseListenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "stdio" || text == "stdio://" {
            return Ok(Listen::Stdio);
        }
        if let Some(path) = text.strip_prefix("unix://") {
            let path = PathBuf::from(path);
            return if path.is_absolute() {
                Ok(Listen::Unix(path))
            } else {
                Err(ParseListenError::RelativePath)
            };
        }
        if let Some(address) = text.strip_prefix("wss://") {
            return Ok(Listen::SecureWebSocket(parse_address(address)?));
        }
        let address = text.strip_prefix("ws://").ok_or(ParseListenError::Form)?;
        Ok(Listen::WebSocket(parse_address(address)?))
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, ParseListenError> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let parsed = match text.strip_prefix("localhost:") {
        Some(port) => port
            .parse()
            .map(|port| (IpAddr::V4(Ipv4Addr::LOCALHOST), port).into())
            .ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or(ParseListenError::Address)
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::WebSocket(address) => write!(f, "ws://{address}"),
            Listen::SecureWebSocket(address) => write!(f, "wss://{address}"),
            Listen::Stdio => f.write_str("stdio://"),
            Listen::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_forms_parse_and_print() {
        for (text, shown) in [
            ("ws://127.0.0.1:0", "ws://127.0.0.1:0"),
            ("ws://[::1]:80/", "ws://[::1]:80"),
            ("ws://localhost:7", "ws://127.0.0.1:7"),
            ("wss://0.0.0.0:7443", "wss://0.0.0.0:7443"),
            ("stdio", "stdio://"),
            ("stdio://", "stdio://"),
            ("unix:///run/x.sock", "unix:///run/x.sock"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "http://127.0.0.1:1",
            "ws://127.0.0.1",
            "ws://example.org:1",
            "unix://x",
            "wss://example.org:1",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
