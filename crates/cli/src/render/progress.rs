//! How far a copy is.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use super::{amount::amount, out::note};
use crate::transfer::Totals;

/// How much of the newest pace is in the one that is shown.
const NEWEST: f64 = 0.2;
/// How many characters the bar has.
const BAR: usize = 24;

/// How fast it goes: mostly as before, so that the time left doesn't jump.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    bytes: u64,
    at: Duration,
    per_second: Option<f64>,
}

impl Pace {
    /// So many bytes were copied after this time.
    pub(crate) fn update(&mut self, bytes: u64, at: Duration) {
        let time = at.saturating_sub(self.at).as_secs_f64();
        if time <= 0.0 {
            return;
        }
        let now = bytes.saturating_sub(self.bytes) as f64 / time;
        self.per_second = Some(match self.per_second {
            Some(before) => before + NEWEST * (now - before),
            None => now,
        });
        (self.bytes, self.at) = (bytes, at);
    }
}

/// One line: how much, how fast, how long.
pub(crate) fn line(totals: &Totals, pace: &Pace, lost: bool, width: usize) -> String {
    let mut parts = Vec::new();
    let found = totals.bytes_found.max(totals.bytes);
    if totals.all_found && found > 0 {
        let share = totals.bytes as f64 / found as f64;
        let full = ((share * BAR as f64) as usize).min(BAR);
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
        parts.push(format!("[{bar}] {:3.0}%", (share * 100.0).floor()));
        parts.push(format!("{} of {}", amount(totals.bytes), amount(found)));
    } else {
        parts.push(amount(totals.bytes));
    }
    if totals.files_found > 1 {
        parts.push(format!("{} of {} files", totals.files, totals.files_found));
    }
    if lost {
        parts.push("connection lost, reconnecting…".to_owned());
    } else if let Some(rate) = pace.per_second {
        parts.push(format!("{}/s", amount(rate as u64)));
        let left = found.saturating_sub(totals.bytes) as f64 / rate;
        if totals.all_found && left.is_finite() && left < 1e6 {
            parts.push(format!("{} left", clock(left)));
        }
    }
    let line = parts.join("  ");
    line.chars().take(width.saturating_sub(1)).collect()
}

/// What it has come to.
pub(crate) fn summary(totals: &Totals, took: Duration) -> String {
    let files = match totals.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let seconds = took.as_secs_f64();
    let mut words = format!("copied {files}, {} in {seconds:.1} s", amount(totals.bytes));
    if totals.bytes > 0 && seconds >= 0.1 {
        let rate = totals.bytes as f64 / seconds;
        words.push_str(&format!(", {}/s", amount(rate as u64)));
    }
    if totals.failed > 0 {
        words.push_str(&format!("; {} not copied", totals.failed));
    }
    words
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        hours => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

/// The line of a terminal that is drawn again and again; elsewhere there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    width: Option<usize>,
}

impl Bar {
    /// On standard error, if that is a terminal.
    pub(crate) fn wanted(quiet: bool) -> Self {
        let stderr = io::stderr();
        let size = rustix::termios::tcgetwinsize(&stderr);
        let width = size.map_or(80, |size| usize::from(size.ws_col).max(1));
        let shown = !quiet && stderr.is_terminal();
        Bar {
            width: shown.then_some(width),
        }
    }

    pub(crate) fn is_shown(self) -> bool {
        self.width.is_some()
    }

    pub(crate) fn draw(self, totals: &Totals, pace: &Pace, lost: bool) {
        if let Some(width) = self.width {
            let line = line(totals, pace, lost, width);
            let _ = write!(io::stderr(), "\r{line}\u{1b}[K");
        }
    }

    pub(crate) fn clear(self) {
        if self.is_shown() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }

    /// Says something above it.
    pub(crate) fn say(self, words: &str) {
        self.clear();
        note(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> Totals {
        Totals {
            bytes: 512 << 20,
            bytes_found: 1 << 30,
            files: 0,
            files_found: 1,
            failed: 0,
            all_found: true,
        }
    }

    fn pace(totals: &Totals, seconds: u64) -> Pace {
        let mut pace = Pace::default();
        pace.update(totals.bytes, Duration::from_secs(seconds));
        pace
    }

    #[test]
    fn a_line_says_how_much_how_fast_and_how_long() {
        let totals = half();
        let pace = pace(&totals, 4);
        assert_eq!(
            line(&totals, &pace, false, 200),
            "[############............]  50%  512.0 MiB of 1.0 GiB  128.0 MiB/s  0:04 left"
        );
        assert_eq!(line(&totals, &pace, false, 10), "[########");
        assert_eq!(
            line(&totals, &pace, true, 200),
            "[############............]  50%  512.0 MiB of 1.0 GiB  connection lost, reconnecting…"
        );
    }

    #[test]
    fn as_long_as_more_is_found_nobody_knows_how_long() {
        let totals = Totals {
            all_found: false,
            files: 3,
            files_found: 40,
            ..half()
        };
        assert_eq!(
            line(&totals, &pace(&totals, 4), false, 200),
            "512.0 MiB  3 of 40 files  128.0 MiB/s"
        );
        assert_eq!(
            line(&Totals::default(), &Pace::default(), false, 200),
            "0 bytes"
        );
    }

    #[test]
    fn the_pace_follows_slowly() {
        let mut pace = Pace::default();
        pace.update(1000, Duration::from_secs(1));
        pace.update(1000, Duration::from_secs(1));
        pace.update(1000, Duration::from_secs(2));
        assert_eq!(pace.per_second, Some(800.0));
    }

    #[test]
    fn a_summary_has_it_all() {
        let totals = Totals { files: 1, ..half() };
        let took = Duration::from_millis(2000);
        assert_eq!(
            summary(&totals, took),
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

    #[test]
    fn time_left_is_read_like_a_clock() {
        assert_eq!(clock(0.2), "0:01");
        assert_eq!(clock(61.0), "1:01");
        assert_eq!(clock(3661.0), "1:01:01");
    }
}
