//! Terminal modes: raw, or with an escape key.

use std::io::{IsTerminal as _, stdin};

use anyhow::Context;
use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::{Key, guard::Guard};

/// Changed terminal settings. Restored on drop.
pub(crate) struct RawMode {
    before: Termios,
    raw: bool,
    guard: Option<Guard>,
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
            guard: Some(Guard::start()?),
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
    of_stdin.or_else(|| tcgetwinsize(std::io::stdout()).ok().and_then(known))
}
