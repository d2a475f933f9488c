//! A file on this host or on a server.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use clap::builder::{OsStringValueParser, TypedValueParser};

use super::on::{LAUNCHED, server_or_launched};

/// Stands for stdin or stdout.
const STREAM: &str = "-";
const SCHEMES: [&str; 3] = ["ws://", "wss://", "ssh://"];
const SOCKET: &str = "unix:";

/// A file as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// `-`: stdin or stdout.
    Stream,
    /// `PATH`: on this host.
    Here(PathBuf),
    /// `:PATH`: on the server that `--on` names.
    OnDefault(PathBuf),
    /// `URL:PATH`: on that server.
    On {
        /// The server's URL.
        server: String,
        path: PathBuf,
    },
}

impl Location {
    /// The clap parser. Local paths need not be UTF-8.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Location> {
        OsStringValueParser::new().try_map(|text| Location::parse(&text))
    }

    /// The location as it was given.
    pub(crate) fn given(&self) -> PathBuf {
        match self {
            Location::Stream => STREAM.into(),
            Location::Here(path) => path.clone(),
            Location::OnDefault(path) => format!(":{}", path.display()).into(),
            Location::On { server, path } => format!("{server}:{}", path.display()).into(),
        }
    }

    fn parse(text: &OsStr) -> Result<Self, &'static str> {
        let Some(text) = text.to_str() else {
            return Ok(Location::Here(OsString::from(text).into()));
        };
        if text.is_empty() {
            return Err("expected a path");
        }
        if text == STREAM {
            return Ok(Location::Stream);
        }
        if let Some(path) = text.strip_prefix(':') {
            return Ok(Location::OnDefault(path.into()));
        }
        let (server, path) = if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            behind_url(text)
        } else if text.starts_with(SOCKET) {
            behind_colon(text, SOCKET.len())
        } else if text.starts_with(LAUNCHED) {
            behind_command(text)
        } else {
            return Ok(Location::Here(text.into()));
        }
        .ok_or("expected URL:PATH, but there is no path after the URL")?;
        Ok(Location::On {
            server: server_or_launched(server)?,
            path: path.into(),
        })
    }
}

/// `ws://HOST[:PORT][/PATH]:PATH`: splits at the first colon that doesn't belong to the host or the
/// port.
fn behind_url(text: &str) -> Option<(&str, &str)> {
    let host = text.find("://")? + 3;
    let rest = &text[host..];
    let end = match rest.strip_prefix('[') {
        Some(address) => address.find(']')? + 2,
        None => rest.find([':', '/', '?']).unwrap_or(rest.len()),
    };
    let behind_host = &rest[end..];
    let port = behind_host.strip_prefix(':').map_or(0, |behind| {
        let digits = behind.find(|c: char| !c.is_ascii_digit());
        let digits = digits.unwrap_or(behind.len());
        let ends = behind[digits..].is_empty() || behind[digits..].starts_with([':', '/', '?']);
        // Anything but a port number is a path.
        if digits > 0 && ends { 1 + digits } else { 0 }
    });
    behind_colon(text, host + end + port)
}

/// Splits at the first colon from `start` on.
fn behind_colon(text: &str, start: usize) -> Option<(&str, &str)> {
    let colon = start + text[start..].find(':')?;
    Some((&text[..colon], &text[colon + 1..]))
}

/// `stdio:COMMAND:/PATH`: splits at the last colon before a slash, since a command may contain
/// colons.
fn behind_command(text: &str) -> Option<(&str, &str)> {
    let colon = text.rfind(":/")?;
    (colon >= LAUNCHED.len()).then(|| (&text[..colon], &text[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(server: &str, path: &str) -> Result<Location, &'static str> {
        Ok(Location::On {
            server: server.to_owned(),
            path: path.into(),
        })
    }

    fn parse(text: &str) -> Result<Location, &'static str> {
        Location::parse(OsStr::new(text))
    }

    #[test]
    fn server_and_path_are_split_at_the_right_colon() {
        for (text, server, path) in [
            (
                "ws://127.0.0.1:4000:/srv/data",
                "ws://127.0.0.1:4000",
                "/srv/data",
            ),
            ("ws://host:/srv", "ws://host", "/srv"),
            ("ws://host:80:data", "ws://host:80", "data"),
            ("ws://host:data", "ws://host", "data"),
            ("ws://host:80:", "ws://host:80", ""),
            ("ws://host:12a", "ws://host", "12a"),
            ("ws://[::1]:9:/a:b", "ws://[::1]:9", "/a:b"),
            ("ws://[::1]:/a", "ws://[::1]", "/a"),
            ("ssh://me@h:22:/a", "ssh://me@h:22", "/a"),
            ("ssh://me@h:a", "ssh://me@h", "a"),
            ("wss://host/relay?x=1:/a", "wss://host/relay?x=1", "/a"),
            ("wss://host:1/relay:/a", "wss://host:1/relay", "/a"),
            ("unix:///run/s.sock:/a", "unix:///run/s.sock", "/a"),
            ("unix:///run/s.sock:a", "unix:///run/s.sock", "a"),
            (
                "stdio:ssh h outpost serve --listen stdio://:/srv/a",
                "stdio:ssh h outpost serve --listen stdio://",
                "/srv/a",
            ),
        ] {
            assert_eq!(parse(text), on(server, path), "{text}");
        }
    }

    #[test]
    fn anything_but_a_url_is_a_path() {
        let here = |path: &str| Ok(Location::Here(path.into()));
        for path in ["a", "/a:b", "./-", "./:a", "host:a", "http://h/x", "wsx"] {
            assert_eq!(parse(path), here(path));
        }
        assert_eq!(parse(":a/b"), Ok(Location::OnDefault("a/b".into())));
        assert_eq!(parse(":"), Ok(Location::OnDefault("".into())));
        assert_eq!(parse("-"), Ok(Location::Stream));
        use std::os::unix::ffi::OsStrExt as _;
        let odd = OsStr::from_bytes(b"\xff");
        assert_eq!(Location::parse(odd), Ok(Location::Here(odd.into())));
    }

    #[test]
    fn server_without_a_path_is_rejected() {
        for text in [
            "",
            "ws://h:1",
            "ws://h",
            "wss://h/x",
            "ws://[::1",
            "unix:///a",
            "unix:a:/b",
            "stdio:cmd",
            "stdio::/a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
