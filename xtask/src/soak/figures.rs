//! What was done, and what it has left.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outpost_testkit::Server;

/// How long a server may take to come to rest.
const REST_WITHIN: Duration = Duration::from_secs(60);
/// Memory that the allocator may keep.
const KEPT_KIB: u64 = 16 * 1024;

/// How much was done.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) processes: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) lines_typed: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) other_troubles: AtomicU64,
    pub(super) nonsense: AtomicU64,
    pub(super) misbehaved: AtomicU64,
}

pub(super) fn add(figure: &AtomicU64, more: u64) {
    figure.fetch_add(more, Ordering::Relaxed);
}

impl Figures {
    /// Says how far it has come, on a terminal's one line.
    pub(super) fn tell(&self) {
        eprintln!("  {self}");
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        write!(
            f,
            "{} processes in {} sessions, {} MB compared, {} lines typed, {} cuts, {} stalls and the like, \
             {} misbehaving trees, {} pieces of nonsense",
            of(&self.processes),
            of(&self.sessions),
            of(&self.bytes) / 1_000_000,
            of(&self.lines_typed),
            of(&self.cuts),
            of(&self.other_troubles),
            of(&self.misbehaved),
            of(&self.nonsense),
        )
    }
}

/// How a server is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    open_files: usize,
    /// Those that wait for another program, with a descriptor of the server's each. How many there
    /// are has a bound, and below it is chance.
    keepers: usize,
    threads: usize,
    rss_kib: u64,
    living: usize,
}

impl Condition {
    fn of(server: &Server) -> Self {
        let vitals = server.vitals();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid()));
        Condition {
            open_files: vitals.open_files(),
            keepers: keepers(server.pid()),
            threads: tasks.map_or(0, Iterator::count),
            rss_kib: vitals.rss_kib(),
            // The server itself carries the mark too, and so does a helper of its own.
            living: server.mark().living().len(),
        }
    }

    /// As it is once nothing changes any more.
    pub(super) async fn settled(server: &Server) -> Self {
        let deadline = Instant::now() + REST_WITHIN;
        let mut last = Condition::of(server);
        loop {
            tokio::time::sleep(Duration::from_secs(6)).await;
            let now = Condition::of(server);
            let same = (now.open_files, now.living) == (last.open_files, last.living);
            if same || Instant::now() > deadline {
                return now;
            }
            last = now;
        }
    }

    /// Whether nothing has been left since.
    pub(super) fn is_back_at(&self, before: &Condition) -> Result<()> {
        let own = |condition: &Condition| condition.open_files.saturating_sub(condition.keepers);
        ensure!(own(self) <= own(before), "descriptors are left");
        ensure!(self.threads <= before.threads + 1, "threads are left");
        ensure!(self.living <= before.living, "processes are left");
        ensure!(self.rss_kib <= before.rss_kib + KEPT_KIB, "memory is left");
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} descriptors, {} of them keepers', {} threads, {} KiB, {} processes with the server itself",
            self.open_files, self.keepers, self.threads, self.rss_kib, self.living
        )
    }
}

/// How many keepers a server has: children of its one child that makes them.
fn keepers(server: i32) -> usize {
    let processes: Vec<_> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Parentage::read(entry.ok()?.file_name().to_str()?))
        .collect();
    let mothers = processes
        .iter()
        .filter(|one| one.name == "keeper-mother" && one.parent == server);
    let mothers: Vec<_> = mothers.map(|mother| mother.pid).collect();
    let kept = |one: &&Parentage| one.name == "keeper" && mothers.contains(&one.parent);
    processes.iter().filter(kept).count()
}

/// Whose child a process is.
struct Parentage {
    pid: i32,
    name: String,
    parent: i32,
}

impl Parentage {
    fn read(pid: &str) -> Option<Self> {
        let pid = pid.parse().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        Some(Parentage {
            pid,
            name: field("Name:")?.trim().to_owned(),
            parent: field("PPid:")?.trim().parse().ok()?,
        })
    }
}
