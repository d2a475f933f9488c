//! Builds, measures row by row, and prints.

use std::env;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum as _;
use indicatif::{ProgressBar, ProgressStyle};

use super::args::{Args, RowName};
use super::machine::{self, OtherLoad};
use super::measurement::Measurement;
use super::server::Candidate;
use super::{rows, table};
use crate::checkout;
use crate::command::{self, cargo};

/// The context of all rows.
pub(super) struct Bench {
    pub(super) rounds: usize,
    /// Measure smaller amounts.
    quick: bool,
    /// The built binary.
    pub(super) binary: PathBuf,
    /// The peer's shell command.
    pub(super) peer: Option<String>,
    /// Shows the current step on a terminal.
    progress: ProgressBar,
}

impl Bench {
    /// Returns `full`, or `quick` for a smoke test.
    pub(super) fn amount<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(super) fn outpost(&self) -> Candidate<'_> {
        Candidate::Outpost(&self.binary)
    }

    /// Shows the current step.
    pub(super) fn step(&self, what: &str) {
        self.progress.set_message(what.to_owned());
    }

    /// Prints a note.
    pub(super) fn note(&self, what: &str) {
        self.progress.suspend(|| eprintln!("{what}"));
    }

    /// Measures one row and prints how long that took.
    fn measure(&self, row: RowName, name: &str) -> Result<Vec<Measurement>> {
        self.progress.set_prefix(name.to_owned());
        self.step("");
        let (begun, others) = (Instant::now(), OtherLoad::look()?);
        let measured = rows::measure(row, self);
        let (seconds, others) = (begun.elapsed().as_secs_f64(), others.percent_since()?);
        self.note(&format!(
            "{name}: {seconds:.1} s, others used {others:.0} %"
        ));
        measured
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised();
    }
    command::run(&mut cargo("build --profile dist --package outpost"))?;
    let mut facts = machine::facts()?;
    let bench = Bench {
        rounds: args.rounds(),
        quick: args.quick,
        binary: checkout::root().join("target/dist/outpost"),
        peer: args.peer.clone(),
        progress: ProgressBar::new_spinner()
            .with_style(ProgressStyle::with_template("{prefix} … {msg}")?),
    };
    let others = OtherLoad::look()?;
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for row in args.rows() {
        let value = row.to_possible_value().unwrap_or_default();
        let name = value.get_name();
        match bench.measure(row, name) {
            Ok(measured) => lines.extend(measured),
            // A failing row does not stop the others.
            Err(error) => {
                bench.note(&format!("{name} failed: {error:#}"));
                failed.push(name.to_owned());
            }
        }
    }
    bench.progress.finish_and_clear();
    let share = others.percent_since()?;
    facts.push((
        "others",
        format!("used {share:.0} % of the processors meanwhile"),
    ));
    print!("{}", table::for_terminal(&lines, table::wants_colour()));
    println!();
    for (name, fact) in &facts {
        println!("{name:<11}  {fact}");
    }
    println!();
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    if args.write {
        table::write_page(&lines, &facts, bench.rounds)?;
    }
    let missed = lines.iter().filter(|line| line.missed()).count();
    if args.check && missed > 0 {
        bail!("{missed} bounds were missed");
    }
    Ok(())
}

/// Runs the optimised build of this program, so that the client is not the bottleneck.
fn run_optimised() -> Result<()> {
    let status = cargo("run --quiet --release --package xtask --")
        .args(env::args_os().skip(1))
        .status()
        .context("starting the optimised build of this program")?;
    // It has printed its error already.
    ensure!(status.success(), "the benchmark failed");
    Ok(())
}
