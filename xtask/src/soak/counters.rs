//! Counters of the work done, and the server's resource usage before and after.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outpost_testkit::{ProcStats, Server};
use parking_lot::Mutex;

/// How long the server may take to become idle.
const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// Memory that the allocator may keep.
const KEPT_KIB: u64 = 16 * 1024;

pub(super) type SharedCounters = Arc<Mutex<Counters>>;

/// Counts the work done.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) processes: u64,
    pub(super) sessions: u64,
    pub(super) bytes: u64,
    pub(super) lines_typed: u64,
    pub(super) cuts: u64,
    pub(super) other_faults: u64,
    pub(super) malformed: u64,
    pub(super) misbehaved: u64,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} processes in {} sessions, {} MB compared, {} lines typed, {} cuts, {} other link faults, \
             {} misbehaving trees, {} malformed inputs",
            self.processes,
            self.sessions,
            self.bytes / 1_000_000,
            self.lines_typed,
            self.cuts,
            self.other_faults,
            self.misbehaved,
            self.malformed,
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
        let tasks = fs::read_dir(format!("/proc/{}/task", server.pid()));
        let named = |stats: ProcStats, name| {
            let children = stats.children().into_iter().map(ProcStats::of);
            children.filter(move |child| child.name().as_deref() == Some(name))
        };
        let factories = named(stats, "reaper-factory");
        ResourceUsage {
            open_files: stats.open_files(),
            subreapers: factories.flat_map(|one| named(one, "subreaper")).count(),
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
