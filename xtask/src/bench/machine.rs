//! Describes the machine and its load as far as they matter for the results, without naming it.

use std::process::Command;
use std::time::Instant;
use std::{env, fs, thread};

use anyhow::{Context, Result, ensure};

use crate::checkout;
use crate::command::quiet;

/// Clock ticks per second in `/proc`, constant on Linux.
const TICKS: f64 = 100.0;

/// Facts about the machine: names and values.
pub(super) type Facts = Vec<(&'static str, String)>;

/// Collects the facts. Must run before the measurement, which changes the load.
pub(super) fn facts() -> Result<Facts> {
    let cores = thread::available_parallelism()?;
    let cpu = field(
        &read("/proc/cpuinfo").unwrap_or_default(),
        ':',
        "model name",
    );
    let cpu = cpu.unwrap_or_else(|| env::consts::ARCH.to_owned());
    let memory = field(&read("/proc/meminfo")?, ':', "MemTotal").context("no MemTotal")?;
    let system = field(
        &read("/etc/os-release").unwrap_or_default(),
        '=',
        "PRETTY_NAME",
    );
    let load = read("/proc/loadavg")?;
    let load = load.split_whitespace().next().unwrap_or_default();
    Ok(vec![
        ("cpu", format!("{cpu}, {cores} cores")),
        ("memory", gibibytes(&memory)?),
        ("kernel", read("/proc/sys/kernel/osrelease")?),
        ("system", system.unwrap_or_else(|| "unknown".to_owned())),
        ("outpost", version()?),
        ("rust", said(quiet("rustc").arg("--version"))?),
        ("date", said(quiet("date").args(["-u", "+%Y-%m-%d"]))?),
        ("load before", load.to_owned()),
    ])
}

pub(super) fn read(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    Ok(text.trim().to_owned())
}

/// Returns the value of the first line with this name.
pub(super) fn field(text: &str, separator: char, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        let value = value.trim().trim_matches('"');
        (key.trim() == name).then(|| value.to_owned())
    })
}

fn gibibytes(kilobytes: &str) -> Result<String> {
    let number = kilobytes.trim_end_matches(" kB").parse::<f64>();
    let number = number.with_context(|| kilobytes.to_owned())?;
    Ok(format!("{:.0} GiB", number / 1024.0 / 1024.0))
}

/// The version and commit of this build.
fn version() -> Result<String> {
    let git = |args: &[&str]| said(checkout::git().args(args));
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    let changed = if changed { " and changes" } else { "" };
    Ok(format!("{} ({commit}{changed})", env!("CARGO_PKG_VERSION")))
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// CPU ticks of other programs at one moment.
#[derive(Clone, Copy)]
pub(super) struct OtherLoad {
    at: Instant,
    /// Busy ticks of all CPUs that are not ours.
    busy: u64,
}

impl OtherLoad {
    pub(super) fn look() -> Result<Self> {
        let all = busy(&read("/proc/stat")?).context("no processors in /proc/stat")?;
        let ours = ours_and_our_children(&read("/proc/self/stat")?);
        let ours = ours.context("no times in /proc/self/stat")?;
        Ok(Self {
            at: Instant::now(),
            busy: all.saturating_sub(ours),
        })
    }

    /// Returns the percentage of all CPUs that other programs have used since then. Includes
    /// kernel threads and steal time.
    pub(super) fn percent_since(self) -> Result<f64> {
        let now = Self::look()?;
        let cores = thread::available_parallelism()?.get() as f64;
        let there = (now.at - self.at).as_secs_f64() * TICKS * cores;
        Ok((now.busy.saturating_sub(self.busy) as f64 / there).clamp(0.0, 1.0) * 100.0)
    }
}

/// Sums user, nice, system, interrupt and steal ticks.
fn busy(stat: &str) -> Option<u64> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = numbers[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq + steal)
}

/// Ticks of this process and of all its waited-for descendants.
fn ours_and_our_children(stat: &str) -> Option<u64> {
    // The name in parentheses may contain any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let numbers = after_name.split_whitespace().skip(11).take(4);
    numbers.map(|number| number.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_name() {
        let text = "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!(field(text, ':', "model name").unwrap(), "A: B");
        assert_eq!(field(text, ':', "model"), None);
        assert_eq!(field("NAME=\"A B\"\n", '=', "NAME").unwrap(), "A B");
        assert_eq!(gibibytes("24683520 kB").unwrap(), "24 GiB");
    }

    #[test]
    fn idle_and_iowait_are_not_busy() {
        let stat =
            "cpu  1 20 300 4000 50000 600000 7000000 80000000 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(busy(stat), Some(87_600_321));
        assert_eq!(busy("intr 1 2\n"), None);
    }

    #[test]
    fn cpu_times_parse_with_any_process_name() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 1 20 300 4000 20 0 1 0 5000";
        assert_eq!(ours_and_our_children(stat), Some(4321));
        assert_eq!(ours_and_our_children("7"), None);
    }
}
