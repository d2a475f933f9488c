//! A terminal that passes everything on, or one key at once.

use std::io::{IsTerminal as _, stdin};

use anyhow::Context;
use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::{Key, guard::Guard};

/// While this lives, the terminal is another; then it is put back.
pub(crate) struct RawMode {
    before: Termios,
    raw: bool,
    guard: Option<Guard>,
}

impl RawMode {
    /// Makes the terminal on standard input, if there is one, pass on every key
    /// as it is: no echo, no lines, no signals.
    pub(crate) fn set() -> anyhow::Result<Option<Self>> {
        Self::change(true, Termios::make_raw)
    }

    /// Leaves everything as it is, but for one key that isn't to wait for the end
    /// of its line: it ends the line.
    pub(crate) fn heed(key: Key) -> anyhow::Result<Option<Self>> {
        Self::change(false, |terminal| {
            terminal.special_codes[SpecialCodeIndex::VEOL] = key.byte();
        })
    }

    /// Whether every key is passed on, and a line doesn't go back to the left.
    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }

    fn change(raw: bool, change: impl FnOnce(&mut Termios)) -> anyhow::Result<Option<Self>> {
        let terminal = stdin();
        if !terminal.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&terminal).context("cannot read the state of the terminal")?;
        let raw_mode = RawMode {
            guard: Some(Guard::start()?),
            before,
            raw,
        };
        let mut changed = raw_mode.before.clone();
        change(&mut changed);
        tcsetattr(&terminal, OptionalActions::Now, &changed)
            .context("cannot change the state of the terminal")?;
        Ok(Some(raw_mode))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Now: what a terminal that has stopped hasn't shown may never be shown.
        let restored = tcsetattr(stdin(), OptionalActions::Now, &self.before);
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
