//! Progress on stderr: a line per row, and on a terminal the current step.

use std::cell::Cell;
use std::io::{IsTerminal as _, stderr};
use std::time::Instant;

pub(super) struct Progress {
    live: bool,
    row: Cell<&'static str>,
    begun: Cell<Instant>,
    /// The CPU share of other programs during the row.
    others: Cell<f64>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            live: stderr().is_terminal(),
            row: Cell::new(""),
            begun: Cell::new(Instant::now()),
            others: Cell::new(0.0),
        }
    }

    /// Starts a row.
    pub(super) fn row(&self, name: &'static str) {
        self.finish();
        self.row.set(name);
        self.begun.set(Instant::now());
        if self.live {
            eprint!("\r\x1b[K{name} …");
        }
    }

    /// Records the CPU share of other programs.
    pub(super) fn others(&self, share: f64) {
        self.others.set(share);
    }

    /// Shows the current step.
    pub(super) fn step(&self, what: &str) {
        if self.live {
            eprint!("\r\x1b[K{} … {what}", self.row.get());
        }
    }

    /// Prints a note.
    pub(super) fn note(&self, what: &str) {
        if self.live {
            eprint!("\r\x1b[K");
        }
        eprintln!("{what}");
    }

    /// Ends the last row.
    pub(super) fn done(&self) {
        self.finish();
        self.row.set("");
    }

    fn finish(&self) {
        if self.live {
            eprint!("\r\x1b[K");
        }
        if !self.row.get().is_empty() {
            let seconds = self.begun.get().elapsed().as_secs_f64();
            let others = self.others.get() * 100.0;
            eprintln!(
                "{}: {seconds:.1} s, others used {others:.0} %",
                self.row.get()
            );
        }
    }
}
