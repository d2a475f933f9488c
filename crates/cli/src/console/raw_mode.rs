//! A terminal that passes everything on.

use std::io::{IsTerminal as _, stdin};

use anyhow::Context;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::guard::Guard;

/// While this lives, keys go to whoever reads them: no echo, no lines, no
/// signals.
pub(crate) struct RawMode {
    before: Termios,
    guard: Option<Guard>,
}

impl RawMode {
    /// Sets the terminal on standard input, if there is one.
    pub(crate) fn set() -> anyhow::Result<Option<Self>> {
        let terminal = stdin();
        if !terminal.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&terminal).context("cannot read the state of the terminal")?;
        let raw_mode = RawMode {
            guard: Some(Guard::start()?),
            before,
        };
        let mut raw = raw_mode.before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Drain, &raw)
            .context("cannot change the state of the terminal")?;
        Ok(Some(raw_mode))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let restored = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
        if restored.is_ok()
            && let Some(guard) = self.guard.take()
        {
            guard.dismiss();
        }
    }
}

/// The size of the terminal we are on: rows, columns.
pub(crate) fn window_size() -> Option<(u16, u16)> {
    let known = |size: rustix::termios::Winsize| {
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    };
    let of_stdin = tcgetwinsize(stdin()).ok().and_then(known);
    of_stdin.or_else(|| tcgetwinsize(std::io::stdout()).ok().and_then(known))
}
