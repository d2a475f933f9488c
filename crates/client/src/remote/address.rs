//! Where a server is.

use std::path::PathBuf;

use super::DialError;

/// Where a server listens.
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
    /// Reads `ws://HOST[:PORT][/PATH]`, the same with `wss`, or `unix:///PATH`.
    pub(super) fn parse(url: &str) -> Result<Self, DialError> {
        let (scheme, rest) = url.split_once("://").ok_or(DialError::Url(
            "it does not begin with ws://, wss:// or unix://",
        ))?;
        let tls = match scheme {
            "ws" => false,
            "wss" => true,
            "unix" if rest.starts_with('/') => return Ok(Address::Unix(rest.into())),
            "unix" => return Err(DialError::Url("a unix socket has an absolute path")),
            _ => return Err(DialError::Url("only ws, wss and unix are known")),
        };
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('/') => (&rest[..at], rest[at..].to_owned()),
            Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
            None => (rest, "/".to_owned()),
        };
        if authority.contains('@') || path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(DialError::Url("it names a user, or holds blanks"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest
                    .split_once(']')
                    .ok_or(DialError::Url("a bracket isn't closed"))?;
                (host, after.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(DialError::Url("it names no host"));
        }
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(port) => port
                .parse()
                .map_err(|_| DialError::Url("the port is no number"))?,
        };
        Ok(Address::Tcp {
            host: host.to_owned(),
            port,
            path,
            tls,
        })
    }
}

/// The URL of a server without what may be a secret: a user, a query, a fragment.
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
    fn what_a_url_says() {
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
    fn what_is_no_address() {
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
