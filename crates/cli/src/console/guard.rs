//! Terminal guard: a child process that restores the terminal if this program is killed.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use anyhow::Context;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Tells the guard that the terminal has been restored.
const RESTORED: u8 = b'.';

/// A running guard. It restores the terminal when dropped without [`Guard::disarm`].
pub(crate) struct Guard {
    child: Child,
    /// The guard acts when this pipe closes.
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts a guard that remembers the current terminal settings.
    pub(super) fn start() -> anyhow::Result<Self> {
        let terminal = rustix::io::dup(std::io::stdin())?;
        let mut child = Command::new("/proc/self/exe")
            .arg("guard-terminal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(terminal)
            .spawn()
            .context("cannot start the terminal guard")?;
        let pipe = child.stdin.take();
        let ready = child.stdout.take().map(|mut out| out.read(&mut [0]));
        let guard = Guard { child, pipe };
        anyhow::ensure!(
            matches!(ready, Some(Ok(1))),
            "cannot guard the terminal: the guard ended at once"
        );
        Ok(guard)
    }

    /// Ends the guard after the terminal has been restored.
    pub(super) fn disarm(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(&[RESTORED]);
        }
        let _ = self.child.wait();
    }
}

/// Restores the terminal on stderr when stdin ends without [`RESTORED`].
pub(crate) fn run() -> ExitCode {
    let terminal = std::io::stderr();
    // In a session of its own, the guard gets no SIGINT or SIGHUP from the terminal, and isn't
    // stopped by SIGTTOU when it changes the settings.
    let _ = rustix::process::setsid();
    let Ok(before) = tcgetattr(&terminal) else {
        return ExitCode::FAILURE;
    };
    if std::io::stdout().write_all(&[RESTORED]).is_err() || std::io::stdout().flush().is_err() {
        return ExitCode::FAILURE;
    }
    let mut message = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut message);
    if message != [RESTORED] {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
    ExitCode::SUCCESS
}
