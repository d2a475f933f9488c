//! Servers behind ssh: `ssh://[USER@]HOST[:PORT]`.
//!
//! ssh runs `outpost relay` on the other host, which connects its stdin and stdout to the user's own
//! server there and starts it if necessary. That server outlives the connection, so a lost one is
//! replaced by running ssh again, and detached work continues without one.

use std::str::FromStr;

use anyhow::{Context, bail};

/// A host that ssh connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SshDestination {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

impl SshDestination {
    /// The command that connects to the user's server on the other host. Questions, such as for a
    /// password, are left to the configuration of ssh if they may be asked.
    pub(crate) fn command_line(&self, may_ask: bool) -> Vec<String> {
        let mut argv = vec!["ssh".to_owned(), "-T".to_owned()];
        if !may_ask {
            argv.push("-oBatchMode=yes".to_owned());
        }
        if let Some(port) = self.port {
            argv.extend(["-p".to_owned(), port.to_string()]);
        }
        if let Some(user) = &self.user {
            argv.extend(["-l".to_owned(), user.clone()]);
        }
        argv.extend(["--", &self.host, "outpost relay"].map(str::to_owned));
        argv
    }
}

impl FromStr for SshDestination {
    type Err = anyhow::Error;

    /// Parses `[USER@]HOST[:PORT]`. Names that ssh or a shell could take for anything else are
    /// rejected.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        const EXPECTED: &str = "expected ssh://[USER@]HOST[:PORT]";
        let text = text.strip_suffix('/').unwrap_or(text);
        let (user, authority) = match text.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, text),
        };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').context(EXPECTED)?;
                host.parse::<std::net::Ipv6Addr>().context(EXPECTED)?;
                match rest.strip_prefix(':') {
                    None if !rest.is_empty() => bail!(EXPECTED),
                    port => (host, port),
                }
            }
            None => {
                let (host, port) = match authority.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (authority, None),
                };
                if !is_name(host) {
                    bail!(EXPECTED);
                }
                (host, port)
            }
        };
        if user.is_some_and(|user| !is_name(user)) {
            bail!(EXPECTED);
        }
        let port = port.map(|port| port.parse().ok().filter(|port| *port > 0));
        if port == Some(None) {
            bail!(EXPECTED);
        }
        Ok(SshDestination {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port: port.flatten(),
        })
    }
}

/// Returns whether a user or host is a plain name, which can't be an option.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_become_arguments() {
        for (text, line) in [
            ("build", "ssh -T -- build outpost relay"),
            (
                "me@build.example:2222/",
                "ssh -T -p 2222 -l me -- build.example outpost relay",
            ),
            ("[::1]:22", "ssh -T -p 22 -- ::1 outpost relay"),
        ] {
            let destination: SshDestination = text.parse().unwrap();
            assert_eq!(destination.command_line(true).join(" "), line);
            let silent = line.replacen("ssh -T", "ssh -T -oBatchMode=yes", 1);
            assert_eq!(destination.command_line(false).join(" "), silent);
        }
    }

    #[test]
    fn options_and_shell_syntax_are_rejected() {
        for text in [
            "",
            "-oProxyCommand=x",
            "-l@host",
            "me@-x",
            "a b",
            "a;b",
            "$(x)",
            "host:port",
            "host:0",
            "host:99999",
            "host/path",
            "@host",
            "me@",
            "[::1",
            "[x]",
            "[::1]x",
            "me:secret@host",
        ] {
            assert!(text.parse::<SshDestination>().is_err(), "{text}");
        }
    }
}
