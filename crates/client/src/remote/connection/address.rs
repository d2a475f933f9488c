//! Server URLs.

use std::path::PathBuf;

use super::dial::DialError;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
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
    pub(super) fn parse(url: &str) -> Result<Self, DialError> {
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
