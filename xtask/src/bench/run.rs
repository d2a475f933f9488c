//! Builds, measures row by row, and prints.

use anyhow::{Context, Result, bail, ensure};

use super::args::Args;
use super::machine::Machine;
use super::measurement::Measurement;
use super::other_load::OtherLoad;
use super::progress::Progress;
use super::rows;
use super::server::Candidates;
use super::{page, table};
use crate::checkout;
use crate::command::{self, cargo};

/// The context of all rows.
pub(super) struct Bench {
    pub(super) rounds: usize,
    /// Measure smaller amounts.
    pub(super) quick: bool,
    pub(super) candidates: Candidates,
    pub(super) progress: Progress,
}

impl Bench {
    /// Returns `full`, or `quick` for a smoke test.
    pub(super) fn amount<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised(args);
    }
    command::run(&mut cargo([
        "build",
        "--profile",
        "dist",
        "--package",
        "outpost",
    ]))?;
    let mut machine = Machine::look()?;
    let bench = Bench {
        rounds: args.rounds(),
        quick: args.quick,
        candidates: Candidates {
            outpost: checkout::root().join("target/dist/outpost"),
            peer: args.peer.clone(),
        },
        progress: Progress::new(),
    };
    let others = OtherLoad::look()?;
    let (lines, failed) = measure(&bench, args);
    let share = others.share_since()? * 100.0;
    machine.add(
        "others",
        format!("used {share:.0} % of the processors meanwhile"),
    );
    print!("{}", table::for_terminal(&lines, table::wants_colour()));
    println!("\n{machine}");
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    if args.write {
        page::write(&lines, &machine, bench.rounds)?;
    }
    let missed = lines.iter().filter(|line| line.missed()).count();
    if args.check && missed > 0 {
        bail!("{missed} bounds were missed");
    }
    Ok(())
}

/// Runs the optimised build of this program, so that the client is not the bottleneck.
fn run_optimised(args: &Args) -> Result<()> {
    let mut again = cargo(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    let status = again
        .arg("bench")
        .args(args.to_words())
        .status()
        .context("starting the optimised build of this program")?;
    // It has printed its error already.
    ensure!(status.success(), "the benchmark failed");
    Ok(())
}

/// Measures each row. A failing row does not stop the others.
fn measure(bench: &Bench, args: &Args) -> (Vec<Measurement>, Vec<&'static str>) {
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for row in args.rows() {
        let row = rows::of(row);
        bench.progress.row(row.name);
        let others = OtherLoad::look();
        let measured = (row.run)(bench);
        if let Ok(share) = others.and_then(OtherLoad::share_since) {
            bench.progress.others(share);
        }
        match measured {
            Ok(measured) => lines.extend(measured),
            Err(error) => {
                bench
                    .progress
                    .note(&format!("{} failed: {error:#}", row.name));
                failed.push(row.name);
            }
        }
    }
    bench.progress.done();
    (lines, failed)
}
