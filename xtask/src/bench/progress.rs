//! What is said while it runs, beside the result and never in it: a line for each row, and on a
//! terminal how far it has come.

use std::cell::Cell;
use std::io::{IsTerminal as _, stderr};
use std::time::Instant;

pub(super) struct Progress {
    live: bool,
    row: Cell<&'static str>,
    begun: Cell<Instant>,
    /// The share of the machine that others used during the row.
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

    /// A row begins.
    pub(super) fn row(&self, name: &'static str) {
        self.finish();
        self.row.set(name);
        self.begun.set(Instant::now());
        if self.live {
            eprint!("\r\x1b[K{name} …");
        }
    }

    /// Somebody else used this share of the machine during the row.
    pub(super) fn others(&self, share: f64) {
        self.others.set(share);
    }

    /// Where in the row we are.
    pub(super) fn step(&self, what: &str) {
        if self.live {
            eprint!("\r\x1b[K{} … {what}", self.row.get());
        }
    }

    /// Something worth knowing that isn't a number.
    pub(super) fn note(&self, what: &str) {
        if self.live {
            eprint!("\r\x1b[K");
        }
        eprintln!("{what}");
    }

    /// The last row has ended.
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
