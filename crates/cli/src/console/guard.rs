//! A small program that puts a terminal back when the one that changed it is
//! killed and can't.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use anyhow::Context;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// What the guard is told when there is nothing left to do.
const RESTORED: u8 = b'.';

/// The guard, as the program sees it that it guards. Dropping it without a word
/// makes it act.
pub(crate) struct Guard {
    child: Child,
    /// Its end is the news that we are gone.
    line: Option<ChildStdin>,
}

impl Guard {
    /// Starts one that knows what the terminal is like now.
    pub(super) fn start() -> anyhow::Result<Self> {
        let terminal = rustix::io::dup(std::io::stdin())?;
        let mut child = Command::new("/proc/self/exe")
            .arg("guard-terminal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(terminal)
            .spawn()
            .context("cannot start what guards the terminal")?;
        let line = child.stdin.take();
        let ready = child.stdout.take().map(|mut out| out.read(&mut [0]));
        let guard = Guard { child, line };
        anyhow::ensure!(
            matches!(ready, Some(Ok(1))),
            "cannot guard the terminal: what does it has ended"
        );
        Ok(guard)
    }

    /// The terminal has been put back already.
    pub(super) fn dismiss(mut self) {
        if let Some(mut line) = self.line.take() {
            let _ = line.write_all(&[RESTORED]);
        }
        let _ = self.child.wait();
    }
}

/// Guards the terminal on our standard error until standard input ends.
pub(crate) fn run() -> ExitCode {
    let terminal = std::io::stderr();
    // Nothing that is typed or hung up there is meant for us, and who isn't of a
    // terminal's session may change it at any time.
    let _ = rustix::process::setsid();
    let Ok(before) = tcgetattr(&terminal) else {
        return ExitCode::FAILURE;
    };
    if std::io::stdout().write_all(&[RESTORED]).is_err() || std::io::stdout().flush().is_err() {
        return ExitCode::FAILURE;
    }
    let mut last_word = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut last_word);
    if last_word != [RESTORED] {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
    ExitCode::SUCCESS
}
