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
    /// Lines on standard input and output.
    Stdio,
    /// WebSocket over a unix socket.
    Unix(PathBuf),
}

/// Error of parsing a [`Listen`] address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseListenError {
    /// Unknown form.
    #[error("expected ws://IP:PORT, unix:///absolute/path or stdio://")]
    Form,
    /// No IP address and port after `ws://`.
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
        let address = text.strip_prefix("ws://").ok_or(ParseListenError::Form)?;
        let address = address.strip_suffix('/').unwrap_or(address);
        if let Some(port) = address.strip_prefix("localhost:") {
            let port = port.parse().map_err(|_| ParseListenError::Address)?;
            return Ok(Listen::WebSocket(
                (IpAddr::V4(Ipv4Addr::LOCALHOST), port).into(),
            ));
        }
        address
            .parse()
            .map(Listen::WebSocket)
            .map_err(|_| ParseListenError::Address)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::WebSocket(address) => write!(f, "ws://{address}"),
            Listen::Stdio => f.write_str("stdio://"),
            Listen::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_parse_and_print() {
        for (text, shown) in [
            ("ws://127.0.0.1:0", "ws://127.0.0.1:0"),
            ("ws://[::1]:80/", "ws://[::1]:80"),
            ("ws://localhost:7", "ws://127.0.0.1:7"),
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
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
