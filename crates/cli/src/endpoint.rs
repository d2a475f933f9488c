//! Servers that `--on` can name: how they are reached, and who may connect.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};
use outpost_client::{
    BearerToken, Error, RemoteExecutor, RemoteOptions, TlsConfig, TlsOptions, public_address,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::{
    args::{AccessArgs, LAUNCHED, LOCAL, SSH},
    config::{self, HostConfig, expand_home},
    render::out::note,
    ssh::SshDestination,
};

/// Variable with the token. It is for this program and reaches no child.
pub(crate) const TOKEN_VARIABLE: &str = "OUTPOST_TOKEN";
/// Variable with the default of `--on`.
pub(crate) const HOST_VARIABLE: &str = "OUTPOST_HOST";

/// Signals that a launched server ignores: Ctrl-C and Ctrl-\\ are for the command on it, to which this
/// program forwards them.
const LAUNCHED_IGNORES: &str = "INT QUIT";
/// Signals that ssh ignores. Before this program stops on Ctrl-Z, it still has to ask the server to
/// keep the command.
const SSH_IGNORES: &str = "INT QUIT TSTP";

/// Keeps the processes that this program starts, and others of its user, from reading OUTPOST_TOKEN in
/// `/proc`. Processes of root still can.
pub(crate) fn protect_token() -> anyhow::Result<()> {
    if std::env::var_os(TOKEN_VARIABLE).is_some() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .context("cannot protect OUTPOST_TOKEN")?;
    }
    Ok(())
}

/// A server with all that is needed to connect to it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The URL, the launch command or the name of the host, as it was given.
    given: String,
    /// The URL or the launch command.
    url: String,
    reach: Reach,
    /// Whether OUTPOST_HOST names it.
    is_default: bool,
    /// The working directory of commands, and the base of relative paths.
    pub(crate) cwd: Option<String>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
enum Reach {
    Url {
        token: Option<BearerToken>,
        tls: Option<TlsConfig>,
    },
    Ssh {
        destination: SshDestination,
        /// ssh may ask for a password.
        may_ask: bool,
    },
    Launched,
}

/// The configuration has no host of this name.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no host {name}; `outpost hosts list` lists the hosts, and `outpost hosts add {name} URL` \
     adds it"
)]
pub(crate) struct UnknownHost {
    name: String,
}

impl Endpoint {
    /// The server of `--on` or OUTPOST_HOST; none for this host.
    pub(crate) fn of_flags(on: Option<&str>, access: &AccessArgs) -> anyhow::Result<Option<Self>> {
        let default = match on {
            Some(_) => None,
            None => std::env::var_os(HOST_VARIABLE).filter(|host| !host.is_empty()),
        };
        let default = default.map(|host| host.into_string().ok());
        let default = default.map(|host| host.context("cannot use OUTPOST_HOST: it is not text"));
        let default = default.transpose()?;
        let Some(given) = on.or(default.as_deref()).filter(|on| *on != LOCAL) else {
            return Ok(None);
        };
        let endpoint = Endpoint::resolve(given, access);
        if on.is_some() {
            return endpoint.map(Some);
        }
        let mut endpoint = endpoint.context("OUTPOST_HOST")?;
        endpoint.is_default = true;
        if stderr().is_terminal() {
            let name = endpoint.description();
            note(&format!("using {name}, because OUTPOST_HOST is set"));
        }
        Ok(Some(endpoint))
    }

    /// Resolves a URL, a launch command or the name of a host.
    pub(crate) fn resolve(given: &str, access: &AccessArgs) -> anyhow::Result<Self> {
        if given.contains(':') {
            return Self::with_host(given, None, access);
        }
        let hosts = config::load_config(None)?.hosts()?;
        Self::of_host(given, &hosts, access)
    }

    /// Resolves a URL, a launch command or the name of one of `hosts`.
    pub(crate) fn of_host(
        given: &str,
        hosts: &BTreeMap<String, HostConfig>,
        access: &AccessArgs,
    ) -> anyhow::Result<Self> {
        if given.contains(':') {
            return Self::with_host(given, None, access);
        }
        let host = hosts.get(given);
        let host = host.ok_or_else(|| UnknownHost {
            name: given.to_owned(),
        })?;
        let endpoint = Self::with_host(given, Some(host), access);
        endpoint.with_context(|| format!("host {given}"))
    }

    /// Combines the flags with the settings of a host. Flags win; a host's own token wins over
    /// OUTPOST_TOKEN, which may be for another server.
    fn with_host(
        given: &str,
        host: Option<&HostConfig>,
        access: &AccessArgs,
    ) -> anyhow::Result<Self> {
        let url = host.map_or(given, |host| &host.url);
        let file = |flag: &Option<PathBuf>, of_host: fn(&HostConfig) -> &Option<PathBuf>| {
            let path = flag.as_deref().or_else(|| of_host(host?).as_deref());
            path.map(|path| expand_home(path, std::env::var_os("HOME")))
                .transpose()
        };
        let token_file = file(&access.token_file, |host| &host.token_file)?;
        let certificate = file(&access.client_cert, |host| &host.client_cert)?;
        let key = file(&access.client_key, |host| &host.client_key)?;
        let of_host = match host {
            Some(host) if access.ca.is_none() => host.fingerprint()?,
            _ => None,
        };
        let fingerprint = access.fingerprint.clone().or(of_host);
        let ca_file = match &fingerprint {
            Some(_) => None,
            None => file(&access.ca, |host| &host.ca)?,
        };
        let options = TlsOptions {
            ca_file,
            fingerprint,
            client_certificate: certificate.zip(key),
        };
        let has_tls = options.ca_file.is_some()
            || options.fingerprint.is_some()
            || options.client_certificate.is_some();
        ensure!(
            !has_tls || url.starts_with("wss://"),
            "cannot use certificates for {}: they need a URL that begins with wss://",
            description(url)
        );
        let reach = if url.starts_with(LAUNCHED) {
            Reach::Launched
        } else if let Some(destination) = url.strip_prefix(SSH) {
            Reach::Ssh {
                destination: destination.parse()?,
                may_ask: true,
            }
        } else {
            Reach::Url {
                token: token(token_file.as_deref())?,
                tls: has_tls.then(|| TlsConfig::new(&options)).transpose()?,
            }
        };
        if token_file.is_some() && !matches!(reach, Reach::Url { .. }) {
            bail!("cannot use a token for {}: it needs none", description(url));
        }
        Ok(Endpoint {
            given: given.to_owned(),
            url: url.to_owned(),
            reach,
            is_default: false,
            cwd: host.and_then(|host| host.cwd.clone()),
        })
    }

    /// How the user named it, for errors.
    pub(crate) fn origin(&self) -> String {
        let description = self.description();
        match self.is_default {
            true => format!("OUTPOST_HOST={description}"),
            false => format!("--on {description}"),
        }
    }

    /// Connects. A launched server ends with the executor.
    pub(crate) async fn connect(&self, options: RemoteOptions) -> Result<RemoteExecutor, Error> {
        match &self.reach {
            Reach::Launched => {
                let line = self.url.strip_prefix(LAUNCHED).unwrap_or_default();
                RemoteExecutor::launch(launch_command(line), options).await
            }
            Reach::Ssh {
                destination,
                may_ask,
            } => {
                let (destination, may_ask) = (destination.clone(), *may_ask);
                // By the time of a reconnect, the terminal belongs to the command.
                let command = move |is_reconnect: bool| {
                    let argv = destination.command_line(may_ask && !is_reconnect);
                    ignoring(SSH_IGNORES, argv)
                };
                RemoteExecutor::relay(command, public_address(&self.url), options).await
            }
            Reach::Url { token, tls } => {
                let mut options = options;
                options.token = token.clone();
                options.tls = tls.clone();
                RemoteExecutor::connect(&self.url, options).await
            }
        }
    }

    /// Connects without questions to the user.
    pub(crate) fn unattended(mut self) -> Self {
        if let Reach::Ssh { may_ask, .. } = &mut self.reach {
            *may_ask = false;
        }
        self
    }

    /// The URL or the launch command, which may contain secrets.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether the server is launched for one command, and ends with it.
    pub(crate) fn is_launched(&self) -> bool {
        matches!(self.reach, Reach::Launched)
    }

    /// Whether it is a socket of this host.
    pub(crate) fn is_unix(&self) -> bool {
        self.url.starts_with("unix:")
    }

    /// Whether the server always lists its sessions, so that no keys are stored.
    pub(crate) fn lists_sessions(&self) -> bool {
        self.is_unix() || matches!(self.reach, Reach::Ssh { .. })
    }

    /// Identifies the server among those of a command.
    pub(crate) fn key(&self) -> &str {
        &self.given
    }

    /// The server for messages, logs and models, without secrets.
    pub(crate) fn description(&self) -> String {
        description(&self.given)
    }

    /// A path on the server.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        match &self.cwd {
            Some(cwd) => Path::new(cwd).join(path),
            None => path.to_owned(),
        }
    }
}

/// The working directory of a command: `--cwd`, on a server relative to that of the host.
pub(crate) fn cwd_on(server: Option<&Endpoint>, cwd: Option<&str>) -> Option<String> {
    let Some(of_host) = server.and_then(|server| server.cwd.as_deref()) else {
        return cwd.map(str::to_owned);
    };
    let path = Path::new(of_host).join(cwd.unwrap_or_default());
    Some(path.to_string_lossy().into_owned())
}

/// Leaves out the launch command, and the credentials and query of a URL.
pub(crate) fn description(given: &str) -> String {
    if given.starts_with(LAUNCHED) {
        "a launched server".to_owned()
    } else {
        public_address(given)
    }
}

/// The token of a file, or of OUTPOST_TOKEN.
fn token(file: Option<&Path>) -> anyhow::Result<Option<BearerToken>> {
    if let Some(file) = file {
        return Ok(Some(BearerToken::from_file(file)?));
    }
    let variable = std::env::var_os(TOKEN_VARIABLE).filter(|token| !token.is_empty());
    let token = variable.map(|token| BearerToken::new(&token.to_string_lossy()));
    token.transpose().context(TOKEN_VARIABLE)
}

/// Builds the shell command that launches a server.
///
/// The shell execs a line that is a single program, so that killing the child kills the server
/// itself. Any other line is a script; the shell stays, and the server ends with its stdin.
fn launch_command(line: &str) -> Command {
    match single_program(line) {
        Some(argv) => ignoring(LAUNCHED_IGNORES, argv),
        None => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("trap '' {LAUNCHED_IGNORES}; {line}")]);
            shell.env_remove(TOKEN_VARIABLE);
            shell
        }
    }
}

/// Builds a command that ignores signals which are typed at the terminal. It stays in the foreground
/// process group of the terminal, because ssh may ask for a password there.
fn ignoring(signals: &str, argv: Vec<String>) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(format!("trap '' {signals}; exec \"$@\""))
        .arg("sh")
        .args(argv)
        .env_remove(TOKEN_VARIABLE);
    shell
}

/// Splits a line into arguments if it has no shell syntax but quotes.
fn single_program(line: &str) -> Option<Vec<String>> {
    const BUILT_IN: [&str; 6] = [".", "cd", "command", "eval", "exec", "source"];
    const SYNTAX: &str = ";&|()<>{}[]*?~`$#!\n";
    let argv = shlex::split(line).filter(|_| !line.contains(|c| SYNTAX.contains(c)))?;
    let program = argv.first()?;
    (!program.contains('=') && !BUILT_IN.contains(&&**program)).then_some(argv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str, access: &AccessArgs) -> Result<String, String> {
        let endpoint = Endpoint::of_host(url, &BTreeMap::new(), access);
        let endpoint = endpoint.map_err(|error| format!("{error:#}"))?;
        Ok(endpoint.description())
    }

    #[test]
    fn certificates_and_tokens_need_a_url_that_can_use_them() {
        let certificates = AccessArgs {
            fingerprint: format!("sha256:{}", "00".repeat(32)).parse().ok(),
            ..AccessArgs::default()
        };
        assert!(resolved("wss://h", &certificates).is_ok());
        for url in ["ws://h", "unix:///s", "ssh://h", "stdio:x"] {
            let error = resolved(url, &certificates).unwrap_err();
            assert!(error.contains("begins with wss://"), "{error}");
        }
        let token = AccessArgs {
            token_file: Some("/nowhere/token".into()),
            ..AccessArgs::default()
        };
        let error = resolved("ssh://me@h", &token).unwrap_err();
        assert!(error.contains("ssh://h: it needs none"), "{error}");
        let error = resolved("wss://h", &token).unwrap_err();
        assert!(error.contains("cannot read /nowhere/token"), "{error}");
        let error = resolved("build", &token).unwrap_err();
        assert!(error.contains("outpost hosts add build URL"), "{error}");
    }

    #[test]
    fn single_programs_are_split_and_scripts_are_not() {
        for (line, argv) in [
            (
                " outpost serve --listen stdio://",
                "outpost|serve|--listen|stdio://",
            ),
            ("ssh build 'outpost serve'", "ssh|build|outpost serve"),
            (r#"./a\ b "c d" --e=f"#, "./a b|c d|--e=f"),
        ] {
            assert_eq!(single_program(line).unwrap().join("|"), argv, "{line}");
        }
        for line in [
            "",
            "'open",
            "cd /srv && outpost serve",
            "cd /srv; exec outpost serve",
            "exec outpost serve",
            ". ./profile",
            "A=1 outpost serve",
            "tee log | outpost serve",
            "(outpost serve)",
            "outpost serve $(cat flags)",
            "outpost serve `cat flags`",
            "outpost serve ~/x *",
            "cd /srv\nexec outpost serve",
            "outpost serve 2>&1",
        ] {
            assert_eq!(single_program(line), None, "{line}");
        }
    }

    #[test]
    fn launched_commands_ignore_signals_of_the_terminal() {
        let program = "grep SigIgn /proc/self/status";
        let argv = program.split(' ').map(str::to_owned).collect();
        // Bits of SIGINT (2), SIGQUIT (3) and SIGTSTP (20).
        let (interrupts, stop) = (0b110, 1 << 19);
        for (mut command, expected) in [
            (launch_command(program), interrupts),
            (launch_command(&format!("exec {program}")), interrupts),
            (ignoring(SSH_IGNORES, argv), interrupts | stop),
        ] {
            let output = command.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mask = u64::from_str_radix(text.trim_start_matches("SigIgn:").trim(), 16).unwrap();
            assert_eq!(mask & expected, expected, "{command:?}: {text}");
        }
    }

    #[test]
    fn description_contains_no_secrets() {
        for (on, told) in [
            ("ws://build:7777", "ws://build:7777"),
            (
                "wss://me:secret@build/path?token=secret",
                "wss://build/path",
            ),
            ("wss://me:secret/secret@build/path", "wss://build/path"),
            ("wss://build/a@b", "wss://build/a@b"),
            ("wss://[::1]/a@b", "wss://[::1]/a@b"),
            ("ssh://me@build:22", "ssh://build:22"),
            ("unix:///run/outpost.sock", "unix:///run/outpost.sock"),
            ("unix:///run/a@b.sock", "unix:///run/a@b.sock"),
            ("stdio:ssh -i secret build", "a launched server"),
        ] {
            assert_eq!(description(on), told);
        }
    }
}
