//! Every bound and every time of the tools.

use std::time::Duration;

use super::Keep;

/// Bounds and times. The defaults are what ships.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// How long a command may run that is waited for, unless the call says so,
    pub run: Duration,
    /// and the most that a call may say.
    pub run_max: Duration,
    /// The longest that a call waits for something to read.
    pub wait_max: Duration,
    /// How long the first words of a process are waited for.
    pub first_words: Duration,
    /// How long the streams of a command that has exited may stay open.
    pub drain: Duration,
    /// How long a command has between being asked to end and being made to.
    pub grace: Duration,
    /// The most that a call may give it.
    pub grace_max: Duration,
    /// How long the end of what was killed may take to be known.
    pub last_words: Duration,
    /// How often a client hears of the progress of a call, if it wants to.
    pub progress: Duration,
    /// How long calls go on after the input has ended.
    pub farewell: Duration,
    /// How long their answers may take to be written after that.
    pub parting: Duration,
    /// Bytes of output in an answer, of each stream, unless the call says so,
    pub output: usize,
    /// and the most that a call may say.
    pub output_max: usize,
    /// What is kept of each stream of a process.
    pub keep: Keep,
    /// How many processes may run at once.
    pub running: usize,
    /// How many that have ended are remembered,
    pub ended: usize,
    /// with so much output in all.
    pub ended_bytes: usize,
    /// How many calls may be under way at once.
    pub calls: usize,
    /// The longest message that is understood.
    pub message_bytes: usize,
    /// Bytes of a file in an answer, unless the call says so,
    pub file: usize,
    /// and the most that a call may say.
    pub file_max: usize,
    /// The largest file that is edited, or searched through.
    pub file_whole: u64,
    /// Lines of a file in an answer, unless the call says so.
    pub lines: u64,
    /// How much of a line is shown.
    pub line_bytes: usize,
    /// Entries of a listing, unless the call says so,
    pub entries: usize,
    /// and the most that a call may say.
    pub entries_max: usize,
    /// Lines that a search finds, unless the call says so,
    pub matches: usize,
    /// and the most that a call may say.
    pub matches_max: usize,
    /// How many bytes of lines and names an answer has, at which it is enough.
    pub listed_bytes: usize,
    /// How many directories a search looks into.
    pub search_directories: usize,
    /// How many files it reads,
    pub search_files: usize,
    /// how many bytes of them in all,
    pub search_bytes: u64,
    /// and for how long.
    pub search: Duration,
    /// How many files are read at once.
    pub search_at_once: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            run: Duration::from_secs(120),
            run_max: Duration::from_secs(24 * 60 * 60),
            wait_max: Duration::from_secs(10 * 60),
            first_words: Duration::from_secs(1),
            drain: Duration::from_secs(1),
            grace: Duration::from_secs(2),
            grace_max: Duration::from_secs(60),
            last_words: Duration::from_secs(5),
            progress: Duration::from_secs(1),
            farewell: Duration::from_secs(1),
            parting: Duration::from_secs(1),
            output: 20_000,
            output_max: 200_000,
            keep: Keep {
                head: 128 * 1024,
                tail: 896 * 1024,
                chunks: 4096,
            },
            running: 64,
            ended: 64,
            ended_bytes: 64 * 1024 * 1024,
            calls: 128,
            message_bytes: 48 * 1024 * 1024,
            file: 50_000,
            file_max: 400_000,
            file_whole: 16 * 1024 * 1024,
            lines: 1000,
            line_bytes: 2000,
            entries: 300,
            entries_max: 5000,
            matches: 100,
            matches_max: 1000,
            listed_bytes: 200_000,
            search_directories: 10_000,
            search_files: 20_000,
            search_bytes: 512 * 1024 * 1024,
            search: Duration::from_secs(60),
            search_at_once: 16,
        }
    }
}
