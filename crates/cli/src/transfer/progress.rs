//! Counters, progress bar and summary of a copy.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::{render::out::note, units::byte_size};

/// Template of the bar while the files are still being found.
const FINDING: &str = "{bytes}{msg}  {bytes_per_sec}";
const FINDING_LOST: &str = "{bytes}{msg}  connection lost, reconnecting…";
/// Template of the bar once the total size is known.
const COPYING: &str =
    "[{bar:24}] {percent:>3}%  {bytes} of {total_bytes}{msg}  {bytes_per_sec}  {eta} left";
const COPYING_LOST: &str =
    "[{bar:24}] {percent:>3}%  {bytes} of {total_bytes}{msg}  connection lost, reconnecting…";

/// Progress of a copy, shared by the copy tasks and the progress bar.
#[derive(Debug, Default)]
pub(crate) struct CopyProgress {
    /// Updated for every block, so not behind the lock.
    bytes: AtomicU64,
    totals: Mutex<Totals>,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes copied.
    pub(crate) bytes: u64,
    /// Bytes found so far.
    pub(crate) bytes_found: u64,
    pub(crate) files: u64,
    pub(crate) files_found: u64,
    /// Files that were not copied.
    pub(crate) failed: u64,
    /// The walk is complete.
    pub(crate) all_found: bool,
}

impl CopyProgress {
    pub(super) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Subtracts bytes that have to be copied again.
    pub(super) fn subtract_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn file_found(&self, size: u64) {
        let mut totals = self.totals.lock();
        totals.files_found += 1;
        totals.bytes_found += size;
    }

    pub(super) fn file_copied(&self) {
        self.totals.lock().files += 1;
    }

    pub(super) fn file_failed(&self) {
        self.totals.lock().failed += 1;
    }

    pub(super) fn all_found(&self) {
        self.totals.lock().all_found = true;
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes.load(Ordering::Relaxed),
            ..*self.totals.lock()
        }
    }
}

/// The progress bar on stderr. Hidden if stderr is not a terminal.
#[derive(Clone, Debug)]
pub(crate) struct CopyBar {
    bar: ProgressBar,
}

impl CopyBar {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        CopyBar {
            bar: ProgressBar::with_draw_target(None, target),
        }
    }

    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Draws the bar. `lost` tells whether a connection is lost.
    pub(crate) fn draw(&self, totals: &Totals, lost: bool) {
        let template = match (totals.all_found, lost) {
            (false, false) => FINDING,
            (false, true) => FINDING_LOST,
            (true, false) => COPYING,
            (true, true) => COPYING_LOST,
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("#."));
        }
        self.bar.set_message(if totals.files_found > 1 {
            format!("  {} of {} files", totals.files, totals.files_found)
        } else {
            String::new()
        });
        if totals.all_found {
            self.bar.set_length(totals.bytes_found.max(totals.bytes));
        }
        self.bar.set_position(totals.bytes);
        self.bar.tick();
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a message above the bar.
    pub(crate) fn print(&self, message: &str) {
        self.bar.suspend(|| note(message));
    }
}

/// The final message.
pub(crate) fn summary(totals: &Totals, took: Duration) -> String {
    let files = match totals.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let seconds = took.as_secs_f64();
    let mut message = format!(
        "copied {files}, {} in {seconds:.1} s",
        byte_size(totals.bytes)
    );
    if totals.bytes > 0 && seconds >= 0.1 {
        let rate = totals.bytes as f64 / seconds;
        message.push_str(&format!(", {}/s", byte_size(rate as u64)));
    }
    if totals.failed > 0 {
        message.push_str(&format!("; {} not copied", totals.failed));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [FINDING, FINDING_LOST, COPYING, COPYING_LOST] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn quiet_bar_is_hidden() {
        assert!(!CopyBar::new(true).is_shown());
    }

    #[test]
    fn summary_has_files_bytes_rate_and_failures() {
        let totals = Totals {
            bytes: 512 << 20,
            files: 1,
            ..Totals::default()
        };
        assert_eq!(
            summary(&totals, Duration::from_secs(2)),
            "copied 1 file, 512.0 MiB in 2.0 s, 256.0 MiB/s"
        );
        let totals = Totals {
            failed: 2,
            ..Totals::default()
        };
        assert_eq!(
            summary(&totals, Duration::ZERO),
            "copied 0 files, 0 bytes in 0.0 s; 2 not copied"
        );
    }
}
