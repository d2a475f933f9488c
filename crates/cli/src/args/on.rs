//! `--on`, and the flags that authenticate the client and the server.

use std::path::PathBuf;

use outpost_client::Fingerprint;

use crate::{config::check_host_name, endpoint::Endpoint};

/// Prefix of the command that launches a server.
pub(crate) const LAUNCHED: &str = "stdio:";
/// Prefix of a server that is reached through ssh.
pub(crate) const SSH: &str = "ssh://";
/// The value of `--on` for this host.
pub(crate) const LOCAL: &str = "local";

/// The server to use.
#[derive(clap::Args, Debug)]
pub(crate) struct On {
    /// The server to use: a name of `outpost hosts list`, ws://HOST:PORT, wss://HOST:PORT,
    /// unix:///PATH or ssh://[USER@]HOST[:PORT]; `local` for none [env: OUTPOST_HOST]
    #[arg(long, value_name = "HOST", value_parser = server)]
    pub(crate) on: Option<String>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// The server to use, or a command that launches one.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct OnOrLaunch {
    /// The server to use: a name of `outpost hosts list`, ws://HOST:PORT, wss://HOST:PORT,
    /// unix:///PATH or ssh://[USER@]HOST[:PORT]; or stdio:COMMAND to launch one and connect to its
    /// stdin and stdout; `local` for none [env: OUTPOST_HOST]
    #[arg(long, value_name = "HOST", value_parser = server_or_launched)]
    pub(crate) on: Option<String>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Authentication of this client and of the server.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct AccessArgs {
    /// File with the token that the server wants; its content may also be in OUTPOST_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// File with certificate authorities to trust besides the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The only certificate to accept: sha256: and its hash, as the server prints it
    #[arg(long, value_name = "SHA256", conflicts_with = "ca")]
    pub(crate) fingerprint: Option<Fingerprint>,

    /// File with the certificate of this client
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,

    /// File with the private key of that certificate
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
}

/// Flags of [`AccessArgs`] without a server.
#[derive(Debug, thiserror::Error)]
#[error(
    "--token-file, --ca, --fingerprint, --client-cert and --client-key are for a server, and none is named; \
     name it with --on"
)]
pub(crate) struct UnusedAccess;

impl AccessArgs {
    /// Checks that no flag is given without a server.
    pub(crate) fn check_used(&self, has_server: bool) -> Result<(), UnusedAccess> {
        match has_server || self.is_empty() {
            true => Ok(()),
            false => Err(UnusedAccess),
        }
    }

    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            token_file,
            ca,
            fingerprint,
            client_cert,
            client_key,
        } = self;
        let files = [token_file, ca, client_cert, client_key];
        fingerprint.is_none() && files.into_iter().all(Option::is_none)
    }
}

impl On {
    /// The server of `--on` or OUTPOST_HOST; none for this host.
    pub(crate) fn endpoint(&self) -> anyhow::Result<Option<Endpoint>> {
        let endpoint = Endpoint::of_flags(self.on.as_deref(), &self.access)?;
        self.access.check_used(endpoint.is_some())?;
        Ok(endpoint)
    }
}

impl OnOrLaunch {
    /// The server of `--on` or OUTPOST_HOST; none for this host.
    pub(crate) fn endpoint(&self) -> anyhow::Result<Option<Endpoint>> {
        let endpoint = self.default_endpoint()?;
        self.access.check_used(endpoint.is_some())?;
        Ok(endpoint)
    }

    /// Like [`endpoint`](Self::endpoint), for a command whose paths may name a server too.
    pub(crate) fn default_endpoint(&self) -> anyhow::Result<Option<Endpoint>> {
        Endpoint::of_flags(self.on.as_deref(), &self.access)
    }

    /// The server of `--on`; none for this host.
    pub(crate) fn explicit_endpoint(&self) -> anyhow::Result<Option<Endpoint>> {
        let on = self.on.as_deref().filter(|on| *on != LOCAL);
        self.access.check_used(on.is_some())?;
        on.map(|on| Endpoint::resolve(on, &self.access)).transpose()
    }
}

/// Checks a URL, a launch command or the name of a host.
pub(crate) fn server_or_launched(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix(LAUNCHED) {
        Some(line) if line.trim().is_empty() => Err("expected a command after stdio:"),
        Some(_) => Ok(text.to_owned()),
        None => url_or_name(
            text,
            "expected the name of a host, or a URL that begins with ws://, wss://, unix:///, ssh:// \
             or stdio:",
        ),
    }
}

/// Checks a URL or the name of a host.
fn server(text: &str) -> Result<String, &'static str> {
    if text.starts_with(LAUNCHED) {
        return Err(
            "a server launched with stdio: ends with its command, so it can't have processes of \
             another command",
        );
    }
    url_or_name(
        text,
        "expected the name of a host, or a URL that begins with ws://, wss://, unix:/// or ssh://",
    )
}

/// Checks the scheme of a URL, or the name of a host. The client checks the rest.
fn url_or_name(text: &str, expected: &'static str) -> Result<String, &'static str> {
    match text.split_once(':') {
        Some(("ws" | "wss" | "ssh", rest)) if rest.starts_with("//") => Ok(text.to_owned()),
        Some(("unix", rest)) if rest.starts_with("///") => Ok(text.to_owned()),
        Some(("unix", _)) => Err("expected unix:///PATH for a unix socket"),
        None if text == LOCAL || check_host_name(text).is_ok() => Ok(text.to_owned()),
        _ => Err(expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_needs_a_known_scheme() {
        for right in [
            "ws://h:1",
            "wss://h",
            "unix:///a",
            "ssh://me@h",
            "build",
            "local",
        ] {
            assert_eq!(server(right), Ok(right.to_owned()));
            assert_eq!(server_or_launched(right), Ok(right.to_owned()));
        }
        for wrong in [
            "", "h:1", "http://h", "unix:a", "unix://a", "ssh", "-x", "a/b",
        ] {
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
