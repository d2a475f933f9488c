//! Counters of the work done, and the server's resource usage before and after.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outpost_testkit::Server;

/// How long the server may take to become idle.
const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// Memory that the allocator may keep.
const KEPT_KIB: u64 = 16 * 1024;

/// Counts the work done.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) processes: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) lines_typed: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) other_faults: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) misbehaved: AtomicU64,
}

pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    /// Prints the counters.
    pub(super) fn print(&self) {
        eprintln!("  {self}");
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} processes in {} sessions, {} MB compared, {} lines typed, {} cuts, {} other link faults, \
             {} misbehaving trees, {} malformed inputs",
            of(&self.processes),
            of(&self.sessions),
            of(&self.bytes) / 1_000_000,
            of(&self.lines_typed),
            of(&self.cuts),
            of(&self.other_faults),
            of(&self.misbehaved),
            of(&self.malformed),
        )
    }
}

/// The resource usage of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResourceUsage {
    open_files: usize,
    /// Pooled subreapers, one descriptor each. Their number varies below its bound.
    subreapers: usize,
    threads: usize,
    rss_kib: u64,
    living: usize,
}

impl ResourceUsage {
    fn of(server: &Server) -> Self {
        let stats = server.stats();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid()));
        ResourceUsage {
            open_files: stats.open_files(),
            subreapers: subreapers(server.pid()),
            threads: tasks.map_or(0, Iterator::count),
            rss_kib: stats.rss_kib(),
            // Includes the server itself.
            living: server.tag().living().len(),
        }
    }

    /// Waits until descriptors and processes no longer change.
    pub(super) async fn when_idle(server: &Server) -> Self {
        let deadline = Instant::now() + IDLE_WITHIN;
        let mut last = ResourceUsage::of(server);
        loop {
            tokio::time::sleep(Duration::from_secs(6)).await;
            let now = ResourceUsage::of(server);
            let same = (now.open_files, now.living) == (last.open_files, last.living);
            if same || Instant::now() > deadline {
                return now;
            }
            last = now;
        }
    }

    /// Returns an error if resources leaked since `before`.
    pub(super) fn check_no_leaks(&self, before: &ResourceUsage) -> Result<()> {
        let own = |usage: &ResourceUsage| usage.open_files.saturating_sub(usage.subreapers);
        ensure!(own(self) <= own(before), "descriptors leaked");
        ensure!(self.threads <= before.threads + 1, "threads leaked");
        ensure!(self.living <= before.living, "processes leaked");
        ensure!(self.rss_kib <= before.rss_kib + KEPT_KIB, "memory leaked");
        Ok(())
    }
}

impl fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} descriptors ({} for pooled subreapers), {} threads, {} KiB, {} processes including the server",
            self.open_files, self.subreapers, self.threads, self.rss_kib, self.living
        )
    }
}

/// Counts the subreapers of a server: children of its factory process.
fn subreapers(server: i32) -> usize {
    let processes: Vec<_> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| ProcessEntry::read(entry.ok()?.file_name().to_str()?))
        .collect();
    let factories = processes
        .iter()
        .filter(|one| one.name == "reaper-factory" && one.parent == server);
    let factories: Vec<_> = factories.map(|factory| factory.pid).collect();
    let is_subreaper =
        |one: &&ProcessEntry| one.name == "subreaper" && factories.contains(&one.parent);
    processes.iter().filter(is_subreaper).count()
}

/// A process with its parent.
struct ProcessEntry {
    pid: i32,
    name: String,
    parent: i32,
}

impl ProcessEntry {
    fn read(pid: &str) -> Option<Self> {
        let pid = pid.parse().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        Some(ProcessEntry {
            pid,
            name: field("Name:")?.trim().to_owned(),
            parent: field("PPid:")?.trim().parse().ok()?,
        })
    }
}
