//! `--on`.

/// Prefix of the command that launches a server.
pub(crate) const LAUNCHED: &str = "stdio:";

/// The server to use.
#[derive(clap::Args, Debug)]
pub(crate) struct On {
    /// The server to use: ws://HOST:PORT, wss://HOST:PORT or unix:///PATH
    #[arg(long, value_name = "URL", value_parser = server)]
    pub(crate) on: Option<String>,
}

/// The server to use, or a command that launches one.
#[derive(clap::Args, Debug)]
pub(crate) struct OnOrLaunch {
    /// The server to use: ws://HOST:PORT, wss://HOST:PORT or unix:///PATH; or stdio:COMMAND to
    /// launch one and connect to its stdin and stdout
    #[arg(long, value_name = "URL", value_parser = server_or_launched)]
    pub(crate) on: Option<String>,
}

/// Checks a URL or a launch command.
pub(crate) fn server_or_launched(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix(LAUNCHED) {
        Some(line) if line.trim().is_empty() => Err("expected a command after stdio:"),
        Some(_) => Ok(text.to_owned()),
        None => with_scheme(
            text,
            "expected a URL that begins with ws://, wss://, unix:/// or stdio:",
        ),
    }
}

/// Checks a URL.
fn server(text: &str) -> Result<String, &'static str> {
    if text.starts_with(LAUNCHED) {
        return Err(
            "a server launched with stdio: ends with its command, so it can't have processes of \
             another command",
        );
    }
    with_scheme(
        text,
        "expected a URL that begins with ws://, wss:// or unix:///",
    )
}

/// Checks the scheme of a URL; the client checks the rest.
fn with_scheme(text: &str, expected: &'static str) -> Result<String, &'static str> {
    match text.split_once(':') {
        Some(("ws" | "wss", rest)) if rest.starts_with("//") => Ok(text.to_owned()),
        Some(("unix", rest)) if rest.starts_with("///") => Ok(text.to_owned()),
        Some(("unix", _)) => Err("expected unix:///PATH for a unix socket"),
        _ => Err(expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_needs_a_known_scheme() {
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
    fn launch_command_is_rejected_where_the_server_must_outlive_it() {
        assert!(server_or_launched("stdio:ssh host outpost serve").is_ok());
        assert!(server_or_launched("stdio: ").is_err());
        assert!(
            server("stdio:ssh host")
                .unwrap_err()
                .contains("ends with its command")
        );
    }
}
