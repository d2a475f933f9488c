//! Terminal modes: raw, or with an escape key. A child process restores the terminal if this program
//! is killed.

use std::{
    io::{IsTerminal as _, Read, Write, stderr, stdin, stdout},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use anyhow::Context;
use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::Key;

/// Tells the guard that the terminal has been restored.
const RESTORED: u8 = b'.';

/// Changed terminal settings. Restored on drop.
pub(crate) struct RawMode {
    before: Termios,
    raw: bool,
    guard: Option<RestoreProcess>,
}

impl RawMode {
    /// Puts the terminal on stdin, if it is one, into raw mode: no echo, no line editing, no
    /// signals.
    pub(crate) fn set() -> anyhow::Result<Option<Self>> {
        Self::change(true, Termios::make_raw)
    }

    /// Keeps the mode, but lets `key` end a line, so that it is read at once.
    pub(crate) fn set_line_end(key: Key) -> anyhow::Result<Option<Self>> {
        Self::change(false, |terminal| {
            terminal.special_codes[SpecialCodeIndex::VEOL] = key.byte();
        })
    }

    /// Returns whether the terminal is in raw mode.
    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }

    fn change(raw: bool, change: impl FnOnce(&mut Termios)) -> anyhow::Result<Option<Self>> {
        let terminal = stdin();
        if !terminal.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&terminal).context("cannot read the terminal settings")?;
        let raw_mode = RawMode {
            guard: Some(RestoreProcess::start()?),
            before,
            raw,
        };
        let mut changed = raw_mode.before.clone();
        change(&mut changed);
        tcsetattr(&terminal, OptionalActions::Now, &changed)
            .context("cannot change the terminal settings")?;
        Ok(Some(raw_mode))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // `Now` instead of `Drain`: a stopped terminal may never drain.
        let restored = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        if restored.is_ok()
            && let Some(guard) = self.guard.take()
        {
            guard.disarm();
        }
    }
}

/// The size of our terminal: rows, columns.
pub(crate) fn window_size() -> Option<(u16, u16)> {
    let known = |size: rustix::termios::Winsize| {
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    };
    let of_stdin = tcgetwinsize(stdin()).ok().and_then(known);
    of_stdin.or_else(|| tcgetwinsize(stdout()).ok().and_then(known))
}

/// A child process that restores the terminal if this program is killed, and when this is dropped without
/// [`RestoreProcess::disarm`].
struct RestoreProcess {
    child: Child,
    /// The guard acts when this pipe closes.
    pipe: Option<ChildStdin>,
}

impl RestoreProcess {
    /// Starts a guard that remembers the current terminal settings.
    fn start() -> anyhow::Result<Self> {
        let terminal = rustix::io::dup(stdin())?;
        let mut child = Command::new("/proc/self/exe")
            .arg("guard-terminal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(terminal)
            .spawn()
            .context("cannot start the terminal guard")?;
        let pipe = child.stdin.take();
        let ready = child.stdout.take().map(|mut out| out.read(&mut [0]));
        let guard = RestoreProcess { child, pipe };
        anyhow::ensure!(
            matches!(ready, Some(Ok(1))),
            "cannot guard the terminal: the guard ended at once"
        );
        Ok(guard)
    }

    /// Ends the guard after the terminal has been restored.
    fn disarm(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(&[RESTORED]);
        }
        let _ = self.child.wait();
    }
}

/// Restores the terminal on stderr when stdin ends without [`RESTORED`].
pub(crate) fn guard_terminal() -> ExitCode {
    let terminal = stderr();
    // In a session of its own, the guard gets no SIGINT or SIGHUP from the terminal, and isn't
    // stopped by SIGTTOU when it changes the settings.
    let _ = rustix::process::setsid();
    let Ok(before) = tcgetattr(&terminal) else {
        return ExitCode::FAILURE;
    };
    if stdout().write_all(&[RESTORED]).is_err() || stdout().flush().is_err() {
        return ExitCode::FAILURE;
    }
    let mut message = Vec::new();
    let _ = stdin().read_to_end(&mut message);
    if message != [RESTORED] {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
    ExitCode::SUCCESS
}
