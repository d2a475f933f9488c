//! The command line of the benchmark.

use clap::ValueEnum;

/// How many rounds are enough for medians that stay where they are.
const ROUNDS: usize = 9;
/// How many rounds tell whether something is broken.
const QUICK_ROUNDS: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often each side has its turn (9, or 3 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Less of everything: enough to see that it works, not to quote
    #[arg(long)]
    pub(super) quick: bool,

    /// Measure this row and not the others; may be given more than once
    #[arg(long, value_enum, value_name = "ROW")]
    only: Vec<RowName>,

    /// Measure another server of the protocol too: it prints its ws:// URL, or listens on the free
    /// port that takes the place of {port}
    #[arg(long, value_name = "CMD")]
    pub(super) peer: Option<String>,

    /// Fail when a bound is missed
    #[arg(long)]
    pub(super) check: bool,

    /// Put the table and the machine's data into docs/benchmarks.md
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub(super) write: bool,
}

/// The rows, in the order they are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RowName {
    /// One command after the other
    OneShot,
    /// The same in a sandbox, beside a free one
    Confined,
    /// 1,000 commands, 32 in flight
    Many,
    /// 1 GiB out of a pipe
    Flood,
    /// 1 GiB through `outpost run`, without a server
    Embedded,
    /// 128 MiB out of a terminal
    Pty,
    /// A keystroke and its echo
    Typing,
    /// A keystroke and its echo beside a flood
    Neighbour,
    /// A request behind a long poll
    Waiting,
    /// A connection that is lost, and one that takes its place
    ComingBack,
    /// What an idle server and an idle process cost
    StandingBy,
    /// 1 GiB to a server and back with `outpost cp`
    Copy,
    /// The binary
    Size,
    /// The same with 10, 100 and 1,000 processes standing by, and 1, 10 and 100 connections
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

    /// The same command line, for the optimised build of this program.
    pub(super) fn to_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(rounds) = self.rounds {
            words.extend(["--rounds".to_owned(), rounds.to_string()]);
        }
        for row in &self.only {
            let name = row.to_possible_value().unwrap_or_default();
            words.extend(["--only".to_owned(), name.get_name().to_owned()]);
        }
        if let Some(peer) = &self.peer {
            // In one word, so that a command that begins with a dash stays its value.
            words.push(format!("--peer={peer}"));
        }
        let flags = [
            ("--quick", self.quick),
            ("--check", self.check),
            ("--write", self.write),
        ];
        words.extend(
            flags
                .iter()
                .filter(|flag| flag.1)
                .map(|flag| flag.0.to_owned()),
        );
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Args {
        Line::parse_from([&["bench"], words].concat()).args
    }

    #[test]
    fn all_rows_are_measured_unless_some_are_named() {
        assert_eq!(parse(&[]).rows().count(), RowName::value_variants().len());
        let some: Vec<_> = parse(&["--only", "typing", "--only", "many"])
            .rows()
            .collect();
        assert_eq!(some, [RowName::Many, RowName::Typing]);
    }

    #[test]
    fn the_optimised_build_is_asked_for_the_same() {
        let words = [
            "--rounds",
            "4",
            "--only",
            "standing-by",
            "--peer=x --y {port}",
            "--quick",
            "--check",
        ];
        assert_eq!(parse(&words).to_words(), words);
        assert_eq!(parse(&["--write"]).to_words(), ["--write"]);
    }
}
