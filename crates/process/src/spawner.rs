//! The handle that starts programs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use outpost_types::{EndedProcess, TreeKind};
use rustix::fs::{Mode, OFlags};
use rustix::process::WaitIdOptions;
use tokio::sync::{Semaphore, oneshot};

use crate::child::Child;
use crate::command::Command;
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::exit::{self, Exit};
use crate::launch;
use crate::prepared::Prepared;
use crate::queue::{Job, Queue};
use crate::subreaper::ReaperCommand;
use crate::sys::child_setup::{CloneMode, CloseMode, ProbeTest};
use crate::sys::clone::{self, CloneOptions};
use crate::sys::signal_reset::SignalReset;
use crate::sys::stack::ChildStack;
use crate::tree::{TreeChoice, TreeFactory};

/// How many programs can be started concurrently.
const THREADS: usize = 2;

/// Options of a spawner.
#[derive(Clone, Debug, Default)]
pub struct SpawnerOptions {
    /// The kind of process tree.
    pub trees: TreeChoice,
    /// The program to run as subreaper. Without it, subreapers are unavailable.
    pub subreaper: Option<ReaperCommand>,
    /// The soft and hard limit on open files for children; `None` to inherit the server's. For a
    /// server that has raised its own soft limit and restores the original for children.
    pub child_open_files: Option<(u64, u64)>,
}

/// A handle on a few permanent threads that start programs. Dropping the last clone ends the threads
/// and leaves children running; with subreapers, only children that still have a handle.
#[derive(Clone, Debug)]
pub struct Spawner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    context: Arc<SpawnContext>,
    /// Also held by the threads and by every [`ExitWatch`](crate::ExitWatch).
    queue: Arc<Queue>,
    /// Bounds the queue. A thread releases the permit after its reply. Callers without a permit wait
    /// in FIFO order; dropping their future cancels the wait.
    permits: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

impl Spawner {
    /// Detects the host's features and starts the threads. Fails if the requested kind of process tree
    /// is unavailable.
    pub fn new(options: SpawnerOptions) -> io::Result<Self> {
        let context = SpawnContext::detect(&options)?;
        // If a thread cannot be started, dropping this ends the others.
        let mut shared = Shared {
            context: Arc::new(context),
            queue: Arc::new(Queue::default()),
            // Per thread one running and one queued job, so that no thread idles between jobs.
            permits: Arc::new(Semaphore::new(2 * THREADS)),
            threads: Vec::with_capacity(THREADS),
        };
        for _ in 0..THREADS {
            let thread =
                launch::start_thread(Arc::clone(&shared.context), Arc::clone(&shared.queue))?;
            shared.threads.push(thread);
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Starts a program; resolves once it runs. Dropping the future undoes the start.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub async fn spawn(&self, command: Command) -> Result<Child, SpawnError> {
        let mut prepared = Prepared::new(command)?;
        prepared.program.open_files = self.0.context.open_files;
        let name = prepared.name.clone();
        let stopped = || SpawnError::new(SpawnErrorKind::Stopped, &name, Cause::Stopped);
        let permits = Arc::clone(&self.0.permits);
        let permit = permits.acquire_owned().await.map_err(|_| stopped())?;
        let (reply, receiver) = oneshot::channel();
        self.0.queue.push(Job {
            prepared,
            reply,
            _permit: permit,
        });
        let spawned = receiver.await.map_err(|_| stopped())??;
        spawned
            .register()
            .map_err(|error| SpawnError::new(SpawnErrorKind::Descriptors, &name, error.into()))
    }

    /// The kind of process tree in use.
    pub fn tree_kind(&self) -> TreeKind {
        self.0.context.trees.kind()
    }

    /// The processes that servers in the same cgroup left when they were killed, and that this spawner
    /// has killed at its start.
    pub fn ended_at_start(&self) -> &[EndedProcess] {
        &self.0.context.ended_at_start
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        // The threads are idle: a caller that waits for a start holds a handle.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Shared by the threads of one spawner: host features, detected once, and the tree factory.
#[derive(Debug)]
pub(crate) struct SpawnContext {
    null: OwnedFd,
    /// The limit on open files for children, soft and hard, instead of the server's.
    open_files: Option<(u64, u64)>,
    pub(crate) clone_mode: CloneMode,
    pub(crate) trees: TreeFactory,
    ended_at_start: Vec<EndedProcess>,
}

/// SIGCHLD is ignored in this program, perhaps inherited. The kernel then reaps children at once: their
/// exit status is lost, and their pids are reused while they are still in use here.
#[derive(Debug, thiserror::Error)]
#[error("SIGCHLD is ignored, so the exit status of children would be lost")]
struct SigchldIgnored;

impl SpawnContext {
    pub(crate) fn detect(options: &SpawnerOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let legacy_clone = !clone::has_clone3();
        let clone_mode = CloneMode {
            legacy_clone,
            close_mode: detect_close_mode(legacy_clone)?,
            signal_reset: SignalReset::detect(legacy_clone)?,
        };
        let subreaper = options.subreaper.as_ref();
        let (trees, ended_at_start) = TreeFactory::open(options.trees, subreaper, clone_mode)?;
        Ok(Self {
            null: rustix::fs::open("/dev/null", flags, Mode::empty())?,
            open_files: options.child_open_files,
            clone_mode,
            trees,
            ended_at_start,
        })
    }

    /// The stdin of a child without input.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }
}

/// Probes how a child can get a descriptor table of its own.
fn detect_close_mode(legacy_clone: bool) -> io::Result<CloseMode> {
    let options = CloneOptions {
        legacy_clone,
        share_files: true,
        ..CloneOptions::default()
    };
    let child = clone::probe(options, &mut ChildStack::new()?, ProbeTest::Unshare)?;
    match exit::wait_pidfd(&child.pidfd, WaitIdOptions::empty()) {
        Some(Exit::Lost) => Err(io::Error::other(SigchldIgnored)),
        Some(Exit::Code(0)) => Ok(CloseMode::Unshare),
        _ => Ok(CloseMode::of_copied_table()),
    }
}
