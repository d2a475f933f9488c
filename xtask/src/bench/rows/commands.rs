//! Short commands, from start to closed: one after the other, sandboxed, and many at once.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::client::{Client, ConnectedServer, ENVIRONMENT, Start};
use crate::bench::measurement::{Bound, Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::rounds::{Medians, compare, median, millis, rate};
use crate::bench::run::Bench;

pub(super) const COMMAND: &str = "/usr/bin/true";

/// Commands in flight.
const AT_ONCE: usize = 32;

/// Measures sequential commands.
pub(super) fn one_shot(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(300, 50);
    let medians = compare(
        bench,
        bench.rounds,
        Some(Box::new(|| Ok([p50(count, run_bare)?]))),
        ConnectedServer::open,
        |link| Ok([p50(count, || run_served(&mut link.client, None))?]),
    )?;
    let bounds = vec![Bound::RatioAtMost(1.3), Bound::AboveAtMost(0.4)];
    Ok(medians.lines([("one-shot command, p50", Unit::Millis, bounds)]))
}

/// Compares sequential sandboxed commands with unsandboxed ones.
pub(super) fn sandboxed(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(100, 20);
    let project = tempfile::tempdir()?;
    fs::create_dir(project.path().join(".git"))?;
    let sandbox = workspace(&project.path().canonicalize()?);
    let medians = compare(bench, bench.rounds, None, ConnectedServer::open, |link| {
        let mut p50_with = |sandbox| p50(count, || run_served(&mut link.client, sandbox));
        Ok([p50_with(None)?, p50_with(Some(&sandbox))?])
    })?;
    let [unsandboxed, sandboxed] = medians.outpost;
    let medians = Medians {
        bare: Some([unsandboxed]),
        outpost: [sandboxed],
        peer: medians.peer.map(|[_, sandboxed]| [sandboxed]),
    };
    let name = "sandboxed one-shot beside an unsandboxed one, p50";
    Ok(medians.lines([(name, Unit::Millis, vec![Bound::AboveAtMost(8.0)])]))
}

/// A typical policy of a coding agent.
fn workspace(root: &Path) -> Value {
    let special = |kind: &str, access: &str| json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access});
    let mut git = special("project_roots", "read");
    git["path"]["value"]["subpath"] = ".git".into();
    let entries = [
        special("root", "read"),
        special("project_roots", "write"),
        special("slash_tmp", "write"),
        special("tmpdir", "write"),
        git,
    ];
    let root = format!("file://{}", root.display());
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "cwd": root,
        "workspaceRoots": [root],
    })
}

/// Measures many commands, several in flight, on one connection.
pub(super) fn many(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(1000, 200);
    let medians = compare(
        bench,
        bench.rounds,
        Some(Box::new(|| Ok([many_bare(count)?]))),
        ConnectedServer::open,
        |link| Ok([many_served(&mut link.client, count)?]),
    )?;
    let name = format!("many at once, {AT_ONCE} in flight");
    let bounds = vec![Bound::RatioAtLeast(0.8)];
    Ok(medians.lines([(name, Unit::PerSecond, bounds)]))
}

pub(super) fn p50(count: usize, mut once: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let times: Result<Vec<f64>> = (0..count).map(|_| Ok(millis(once()?))).collect();
    Ok(median(&times?))
}

/// Runs a command without a server: spawn, read both pipes, wait.
pub(super) fn run_bare() -> Result<Duration> {
    let begun = Instant::now();
    let (variable, value) = ENVIRONMENT;
    let mut child = Command::new(COMMAND)
        .env_clear()
        .env(variable, value)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting a command")?;
    let mut output = Vec::new();
    if let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) {
        stdout.read_to_end(&mut output)?;
        stderr.read_to_end(&mut output)?;
    }
    let status = child.wait()?;
    ensure!(status.success(), "{COMMAND} ended with {status}");
    Ok(begun.elapsed())
}

/// Runs a short command on a server.
pub(super) fn run_served(client: &mut Client, sandbox: Option<&Value>) -> Result<Duration> {
    let start = Start {
        argv: &[COMMAND],
        sandbox,
        ..Start::default()
    };
    run_start(client, start)
}

/// Runs a command on a server, which must succeed.
pub(super) fn run_start(client: &mut Client, start: Start<'_>) -> Result<Duration> {
    let (_, name) = client.start(start)?;
    // Encoding the request is not measured.
    let begun = Instant::now();
    loop {
        match client.next()? {
            Message::Exited { process, code } if process == name => {
                ensure!(code == 0, "{:?} ended with {code}", start.argv);
            }
            Message::Closed { process } if process == name => return Ok(begun.elapsed()),
            _ => {}
        }
    }
}

/// One thread per command in flight.
fn many_bare(count: usize) -> Result<f64> {
    let started = AtomicUsize::new(0);
    let ready = Barrier::new(AT_ONCE + 1);
    let work = || -> Result<()> {
        ready.wait();
        while started.fetch_add(1, Ordering::Relaxed) < count {
            run_bare()?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        ready.wait();
        let begun = Instant::now();
        for worker in workers {
            match worker.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a launcher panicked"),
            }
        }
        Ok(rate(count, begun.elapsed()))
    })
}

fn many_served(client: &mut Client, count: usize) -> Result<f64> {
    let start = Start::new(&[COMMAND]);
    let begun = Instant::now();
    let (mut started, mut closed) = (0, 0);
    while closed < count {
        while started < count.min(closed + AT_ONCE) {
            client.start(start)?;
            started += 1;
        }
        match client.next()? {
            Message::Exited { code, .. } => ensure!(code == 0, "{COMMAND} ended with {code}"),
            Message::Closed { .. } => closed += 1,
            _ => {}
        }
    }
    Ok(rate(count, begun.elapsed()))
}
