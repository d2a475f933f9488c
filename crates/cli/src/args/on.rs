//! `--on`.

/// What comes before the command of a server that is launched.
pub(crate) const LAUNCHED: &str = "stdio:";

const NO_SCHEME: &str = "it does not begin with ws://, wss:// or unix://";

/// Which server is meant.
#[derive(clap::Args, Debug)]
pub(crate) struct On {
    /// The server to use: ws://HOST:PORT, wss://HOST:PORT or unix:///PATH
    #[arg(long, value_name = "URL", value_parser = server)]
    pub(crate) on: Option<String>,
}

/// Which server is meant, where one can be launched too.
#[derive(clap::Args, Debug)]
pub(crate) struct OnAny {
    /// The server to use: ws://HOST:PORT, wss://HOST:PORT or unix:///PATH; or
    /// stdio:COMMAND, to launch one and speak to it through its input and output
    #[arg(long, value_name = "URL", value_parser = server_or_launched)]
    pub(crate) on: Option<String>,
}

/// An address, or what launches a server.
pub(crate) fn server_or_launched(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix(LAUNCHED) {
        Some(line) if line.trim().is_empty() => Err("stdio: is followed by a command"),
        Some(_) => Ok(text.to_owned()),
        None => server(text).map_err(|words| match words {
            NO_SCHEME => "it does not begin with ws://, wss://, unix:// or stdio:",
            words => words,
        }),
    }
}

/// The scheme is looked at here, the rest by who dials.
fn server(text: &str) -> Result<String, &'static str> {
    if text.starts_with(LAUNCHED) {
        return Err(
            "a server that is launched with stdio: ends with the command that launched it, so nothing of \
             another command can be there",
        );
    }
    let schemes = ["ws://", "wss://", "unix:///"];
    let known = schemes.iter().any(|scheme| text.starts_with(scheme));
    match known {
        true => Ok(text.to_owned()),
        false if text.starts_with("unix:") => Err("a unix socket is written unix:///PATH"),
        false => Err(NO_SCHEME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_with_a_scheme_that_is_known() {
        for right in ["ws://h:1", "wss://h", "unix:///a"] {
            assert_eq!(server(right), Ok(right.to_owned()));
            assert_eq!(server_or_launched(right), Ok(right.to_owned()));
        }
        for wrong in ["", "h:1", "http://h", "unix:a", "unix://a"] {
            assert!(server(wrong).is_err(), "{wrong}");
            assert!(server_or_launched(wrong).is_err(), "{wrong}");
        }
        assert!(!server("h:1").unwrap_err().contains("stdio:"));
        assert!(server_or_launched("h:1").unwrap_err().contains("stdio:"));
    }

    #[test]
    fn a_server_is_launched_by_who_is_done_with_it() {
        assert!(server_or_launched("stdio:ssh host outpost serve").is_ok());
        assert!(server_or_launched("stdio: ").is_err());
        assert!(
            server("stdio:ssh host")
                .unwrap_err()
                .contains("ends with the command that launched it")
        );
    }
}
