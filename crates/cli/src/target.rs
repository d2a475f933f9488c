//! Resolves `--on` to an executor: local, or a server.

use std::{path::PathBuf, process::Command};

use anyhow::Context;
use outpost_client::{
    Error, LocalExecutor, LocalOptions, RemoteExecutor, RemoteOptions, TreeChoice, public_address,
};
use outpost_engine::sandbox::Level;

use crate::{
    args::LAUNCHED,
    cmd::{confine, subreaper},
    open_files,
};

/// Connects to the server that `--on` names.
pub(crate) async fn connect(on: &str, options: RemoteOptions) -> anyhow::Result<RemoteExecutor> {
    let connected = reach(on, options).await;
    connected.with_context(|| format!("--on {}", description(on)))
}

/// Connects to a server by its URL, or launches one.
pub(crate) async fn reach(on: &str, options: RemoteOptions) -> Result<RemoteExecutor, Error> {
    match on.strip_prefix(LAUNCHED) {
        Some(line) => RemoteExecutor::launch(launch_command(line), options).await,
        None => RemoteExecutor::connect(on, options).await,
    }
}

/// Builds the shell command that launches a server.
///
/// SIGINT and SIGQUIT are ignored in the server: Ctrl-C and Ctrl-\\ are for the command, to which
/// this program forwards them. The server stays in the foreground process group of the terminal,
/// because ssh may ask for a password there.
///
/// The shell execs a line that is a single program, so that killing the child kills the server
/// itself. Any other line is a script; the shell stays, and the server ends with its stdin.
fn launch_command(line: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    match single_program(line) {
        Some(argv) => shell
            .args(["-c", "trap '' INT QUIT; exec \"$@\"", "sh"])
            .args(argv),
        None => shell.args(["-c", &format!("trap '' INT QUIT; {line}")]),
    };
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

/// The target for messages, logs and models, without secrets: leaves out the launch command, and
/// the credentials and query of a URL.
pub(crate) fn description(on: &str) -> String {
    if on.starts_with(LAUNCHED) {
        "a launched server".to_owned()
    } else {
        public_address(on)
    }
}

/// Creates the local executor. Processes start in `cwd`.
pub(crate) fn local(cwd: PathBuf, level: Level) -> anyhow::Result<LocalExecutor> {
    outpost_engine::restore_sigchld().context("cannot restore the default action of SIGCHLD")?;
    let child_open_files = open_files::raise();
    let options = |trees| LocalOptions {
        trees,
        subreaper: Some(subreaper::command()),
        sandbox_helper: Some(confine::command()),
        sandbox_level: level,
        child_open_files,
        cwd: Some(cwd.clone()),
        ..LocalOptions::default()
    };
    // A subreaper ends the tree even if this program is killed; a cgroup would stay.
    let local = LocalExecutor::new(options(TreeChoice::Subreaper))
        .or_else(|_| LocalExecutor::new(options(TreeChoice::Auto)))?;
    Ok(local)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn launch_command_ignores_interrupts() {
        for line in [
            "grep SigIgn /proc/self/status",
            "exec grep SigIgn /proc/self/status",
        ] {
            let output = launch_command(line).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mask = u64::from_str_radix(text.trim_start_matches("SigIgn:").trim(), 16).unwrap();
            // Bits of SIGINT (2) and SIGQUIT (3).
            assert_eq!(mask & 0b110, 0b110, "{line}: {text}");
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
            ("unix:///run/outpost.sock", "unix:///run/outpost.sock"),
            ("stdio:ssh -i secret build", "a launched server"),
        ] {
            assert_eq!(description(on), told);
        }
    }
}
