//! The course of things: build, measure row by row, show.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::args::Args;
use super::line::Line;
use super::machine::Machine;
use super::others::Others;
use super::progress::Progress;
use super::rows;
use super::server::Candidates;
use super::{page, table};
use crate::command::{self, cargo};

/// What every row needs to know.
pub(super) struct Bench {
    pub(super) rounds: usize,
    /// Less of everything.
    pub(super) quick: bool,
    pub(super) candidates: Candidates,
    pub(super) progress: Progress,
}

impl Bench {
    /// How much of something: all of it, or what is enough for a quick look.
    pub(super) fn amount<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised(args);
    }
    command::run(&mut cargo(["build", "--release", "--package", "outpost"]))?;
    let mut machine = Machine::look()?;
    let bench = Bench {
        rounds: args.rounds(),
        quick: args.quick,
        candidates: Candidates {
            outpost: beside_us("outpost")?,
            peer: args.peer.clone(),
        },
        progress: Progress::new(),
    };
    let others = Others::look()?;
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

/// The client must not be slower than what it measures, so it is built as what it measures is.
fn run_optimised(args: &Args) -> Result<()> {
    let mut again = cargo(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    let status = again
        .arg("bench")
        .args(args.to_words())
        .status()
        .context("starting the optimised build of this program")?;
    // It has said already what went wrong.
    ensure!(status.success(), "the benchmark failed");
    Ok(())
}

/// A program that cargo has put where it has put this one.
fn beside_us(name: &str) -> Result<PathBuf> {
    let us = env::current_exe().context("finding this program")?;
    Ok(us.with_file_name(name))
}

/// One row after the other; one that can't be measured doesn't keep the others from it.
fn measure(bench: &Bench, args: &Args) -> (Vec<Line>, Vec<&'static str>) {
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for row in args.rows() {
        let row = rows::of(row);
        bench.progress.row(row.name);
        let others = Others::look();
        let measured = (row.run)(bench);
        if let Ok(share) = others.and_then(Others::share_since) {
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
