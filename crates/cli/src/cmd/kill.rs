//! `outpost kill`: ends or signals processes.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::Context;
use outpost_client::{ProcessPeek, Signal, Terminate};
use rustix::process::Signal as OsSignal;
use tokio::time::timeout;

use crate::{
    args::On,
    detached::{self, IfAttached},
    endpoint::Endpoint,
    exit,
    render::{errors, out},
};

/// Grace period of a termination.
const GRACE: Duration = Duration::from_secs(5);
/// Timeout for the exit of a killed process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Supported signals by name and number.
const SIGNALS: [(&str, OsSignal, Signal); 10] = [
    ("HUP", OsSignal::HUP, Signal::Hangup),
    ("INT", OsSignal::INT, Signal::Interrupt),
    ("QUIT", OsSignal::QUIT, Signal::Quit),
    ("KILL", OsSignal::KILL, Signal::Kill),
    ("USR1", OsSignal::USR1, Signal::User1),
    ("USR2", OsSignal::USR2, Signal::User2),
    ("TERM", OsSignal::TERM, Signal::Terminate),
    ("CONT", OsSignal::CONT, Signal::Continue),
    ("STOP", OsSignal::STOP, Signal::Stop),
    ("WINCH", OsSignal::WINCH, Signal::WindowChange),
];

/// Arguments of `outpost kill`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost kill k3                         terminates it, kills it after 5s
  outpost kill -INT k3 p7                 only sends the signal

Signals:
  Without --signal, each process is terminated with all of its descendants: by SIGTERM, with SIGHUP
  before it if the process handles SIGHUP or ignores SIGTERM, as shells do; by SIGKILL after 5s.
  --signal sends HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or WINCH and nothing else, to the
  process group, and on a terminal also to its foreground group. HUP has no meaning of its own: it ends
  a program that does not handle it, and many daemons read their configuration again.")]
pub(crate) struct Kill {
    /// Only send this signal: a name such as INT or SIGUSR1, or a number; -INT and -9 work too
    #[arg(short, long, value_name = "SIGNAL", value_parser = signal)]
    pub(crate) signal: Option<Signal>,

    #[command(flatten)]
    pub(crate) on: On,

    /// The process ids, or prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Ends or signals the processes, and prints a message for each.
pub(crate) async fn kill(args: &Kill) -> anyhow::Result<ExitCode> {
    let server = args.on.endpoint()?;
    let mut code = ExitCode::SUCCESS;
    for id in &args.ids {
        match kill_one(server.as_ref(), id, args.signal).await {
            Ok(message) => out::lines([message])?,
            Err(error) => {
                out::note(&errors::message(&error));
                code = exit::of_remote_error(&error);
            }
        }
    }
    Ok(code)
}

/// Ends or signals one process, and returns a message.
async fn kill_one(
    on: Option<&Endpoint>,
    id: &str,
    signal: Option<Signal>,
) -> anyhow::Result<String> {
    // Taking the session over disconnects an attached `outpost` command, which then reconnects.
    let opened = detached::open(on, id, IfAttached::Take).await?;
    let process = opened.process();
    let name = opened.found.name();
    if let Some(code) = opened.found.entry.exit_code {
        if signal.is_none() {
            let end = end_tree(&process, Duration::ZERO).await;
            end.with_context(|| format!("cannot end leftover processes of {name}"))?;
        }
        return Ok(format!("{name} had already exited with {code}"));
    }
    if let Some(signal) = signal {
        let sent = process.signal(signal).await;
        sent.with_context(|| format!("cannot signal {name}"))?;
        return Ok(format!("{name} got {}", signal_name(signal)));
    }
    let ended = end_tree(&process, GRACE).await;
    ended.with_context(|| format!("cannot end {name}"))?;
    let exit_code = exit_code(&process, opened.found.entry.next_seq);
    match timeout(GRACE + EXIT_TIMEOUT, exit_code).await {
        Ok(code) => Ok(format!("{name} has ended with {}", code?)),
        Err(_) => anyhow::bail!("{name} was killed and is still alive after {EXIT_TIMEOUT:?}"),
    }
}

async fn end_tree(process: &ProcessPeek, grace: Duration) -> Result<bool, outpost_client::Error> {
    let how = Terminate::new().grace(grace).tree();
    process.terminate(how).await
}

/// Waits for the exit code.
async fn exit_code(process: &ProcessPeek, next_seq: u64) -> anyhow::Result<i32> {
    let mut after = next_seq.saturating_sub(1);
    loop {
        let page = process.read(after, None, GRACE).await;
        let page = page.context("cannot read its exit code")?;
        if let Some(exit) = page.exit {
            return Ok(exit.code);
        }
        after = page.next_seq.saturating_sub(1).max(after);
    }
}

/// Parses a name with or without `SIG`, or a number.
fn signal(text: &str) -> Result<Signal, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let number = text.parse::<i32>().ok();
    let meant = SIGNALS
        .iter()
        .find(|(known, signal, _)| *known == name || number == Some(signal.as_raw()));
    meant.map(|(_, _, signal)| *signal).ok_or_else(|| {
        let names: Vec<_> = SIGNALS.iter().map(|(name, ..)| *name).collect();
        format!("expected one of {}, or its number", names.join(", "))
    })
}

/// The signal's name.
fn signal_name(signal: Signal) -> &'static str {
    let known = SIGNALS.iter().find(|(_, _, known)| *known == signal);
    known.map_or("that signal", |(name, ..)| *name)
}

/// Rewrites `kill -9` and `kill -KILL` to `kill --signal`, as people are used to from kill(1).
pub(crate) fn like_kill(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.collect();
    if args.get(1).is_none_or(|command| command != "kill") {
        return args;
    }
    for arg in args.iter_mut().skip(2).take_while(|arg| *arg != "--") {
        let name = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
        let is_signal = |name: &&str| {
            let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            let is_number = name.chars().all(|c| c.is_ascii_digit());
            !name.is_empty() && name.chars().all(is_word) && (is_number || name.len() > 1)
        };
        if let Some(name) = name.filter(is_signal) {
            *arg = format!("--signal={name}").into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let args = like_kill(line.split(' ').map(OsString::from));
        let args: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
        args.join(" ")
    }

    #[test]
    fn signal_may_be_written_as_for_kill() {
        assert_eq!(read("outpost kill -9 k3"), "outpost kill --signal=9 k3");
        assert_eq!(
            read("outpost kill k3 -KILL"),
            "outpost kill k3 --signal=KILL"
        );
        assert_eq!(read("outpost kill -USR1 k"), "outpost kill --signal=USR1 k");
        for same in [
            "outpost kill -s 9 k3",
            "outpost kill --on unix:///x -h",
            "outpost kill -- -9",
            "outpost run -9 kill",
        ] {
            assert_eq!(read(same), same);
        }
    }

    #[test]
    fn signals_parse_by_name_and_number() {
        for text in ["INT", "sigint", "SIGINT", "int", "2"] {
            assert_eq!(signal(text), Ok(Signal::Interrupt), "{text}");
        }
        for (name, number, meant) in SIGNALS {
            assert_eq!(signal(name), Ok(meant));
            assert_eq!(signal(&number.as_raw().to_string()), Ok(meant));
            assert_eq!(signal_name(meant), name);
        }
        for text in ["", "SIG", "0", "-9", "SEGV", "99", "TERM "] {
            assert!(signal(text).unwrap_err().contains("TERM"), "{text}");
        }
    }
}
