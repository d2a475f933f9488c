//! The command line of the benchmark.

use clap::ValueEnum;

/// Rounds for stable medians.
const ROUNDS: usize = 9;
/// Rounds for a smoke test.
const QUICK_ROUNDS: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds per row (9, or 3 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Measure smaller amounts: a smoke test
    #[arg(long)]
    pub(super) quick: bool,

    /// Measure only this row; may be repeated
    #[arg(long, value_enum, value_name = "ROW")]
    only: Vec<RowName>,

    /// Also measure another server: CMD prints its ws:// URL, or listens on the free port that
    /// replaces {port}
    #[arg(long, value_name = "CMD")]
    pub(super) peer: Option<String>,

    /// Fail if a bound is missed
    #[arg(long)]
    pub(super) check: bool,

    /// Write the results to docs/benchmarks.md
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub(super) write: bool,
}

/// The rows, in the order of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RowName {
    /// Sequential commands
    OneShot,
    /// Sequential sandboxed commands, compared with unsandboxed ones
    Sandboxed,
    /// Commands of a login shell with a snapshot, compared with plain ones
    Login,
    /// 1,000 commands, 32 in flight
    Many,
    /// 1 GiB from a pipe
    Flood,
    /// 1 GiB through `outpost run`, without a server
    Embedded,
    /// 128 MiB from a PTY
    Pty,
    /// A keystroke and its echo
    Typing,
    /// A keystroke and its echo during a flood
    Neighbour,
    /// A request behind a long poll
    LongPoll,
    /// Reconnect, resume and catch up
    Reconnect,
    /// Memory and CPU of an idle server and idle processes
    Idle,
    /// Memory of a server with 100 hostile connections
    Hostile,
    /// 1 GiB to a server and back with `outpost cp`
    Copy,
    /// A flood and sequential commands over TLS, compared with the same without
    Tls,
    /// Connections that authenticate, compared with connections that need not
    Authentication,
    /// Size of the stripped binary
    Size,
    /// Latency and memory with 10, 100 and 1,000 idle processes, and 1, 10 and 100 connections
    Growth,
}

impl Args {
    pub(super) fn rounds(&self) -> usize {
        let usual = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.map_or(usual, usize::from)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = RowName> {
        let wanted = |row: &RowName| self.only.is_empty() || self.only.contains(row);
        RowName::value_variants().iter().copied().filter(wanted)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Measurement {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Args {
        Measurement::parse_from([&["bench"], words].concat()).args
    }

    #[test]
    fn all_rows_are_measured_by_default() {
        assert_eq!(parse(&[]).rows().count(), RowName::value_variants().len());
        let some: Vec<_> = parse(&["--only", "typing", "--only", "many"])
            .rows()
            .collect();
        assert_eq!(some, [RowName::Many, RowName::Typing]);
    }
}
