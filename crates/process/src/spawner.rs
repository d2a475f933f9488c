//! The handle that starts programs.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outpost_types::{EndedProcess, LimitName, ResourceLimits, TreeKind};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::process::WaitIdOptions;
use tokio::sync::{Semaphore, oneshot};

use crate::child::{Child, SpawnedChild};
use crate::command::Command;
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::exit::{self, Exit};
use crate::launch;
use crate::prepared::Prepared;
use crate::rlimits::Rlimits;
use crate::spawn_queue::{Job, SLOW_AFTER, SpawnQueue, THREADS};
use crate::start_progress::{AbandonOnDrop, StartProgress};
use crate::subreaper::ReaperCommand;
use crate::sys::child_setup::CloneProbe;
use crate::sys::clone::{self, CloneOptions};
use crate::sys::clone_mode::{CloneMode, CloseMode};
use crate::sys::signal_reset::SignalReset;
use crate::sys::stack::ChildStack;
use crate::tree::{TreeChoice, TreeFactory};

/// Options of a spawner.
#[derive(Clone, Debug)]
pub struct SpawnerOptions {
    /// The kind of process tree.
    pub trees: TreeChoice,
    /// The program to run as subreaper. Without it, subreapers are unavailable.
    pub subreaper: Option<ReaperCommand>,
    /// The soft and hard limit on open files for children; `None` to inherit the server's. For a
    /// server that has raised its own soft limit and restores the original for children.
    pub child_open_files: Option<(u64, u64)>,
    /// Whether this process may be moved to a cgroup below its own, if that one is delegated to it. The
    /// kernel requires it for limits on the children's memory.
    pub moves_own_cgroup: bool,
    /// Whether this process may become a child subreaper (`PR_SET_CHILD_SUBREAPER`) for trees with
    /// subreapers. Then no process escapes that kills its subreaper and the factory: this process inherits
    /// and kills it. Only for programs with one spawner whose other children stay in their session and
    /// leave no orphans that should run on.
    pub adopts_orphans: bool,
    /// How long a start may take before it is given up, because the file system of the program or of
    /// the working directory does not answer.
    pub start_timeout: Duration,
}

impl Default for SpawnerOptions {
    fn default() -> Self {
        Self {
            trees: TreeChoice::default(),
            subreaper: None,
            child_open_files: None,
            moves_own_cgroup: false,
            adopts_orphans: false,
            start_timeout: Duration::from_secs(20),
        }
    }
}

/// A handle on a few threads that start programs. They are permanent, except that a thread whose start
/// hangs is replaced. Dropping the last clone ends the threads
/// and leaves children running; with subreapers, only children that still have a handle.
#[derive(Clone, Debug)]
pub struct Spawner(Arc<Shared>);

/// The queue and the threads of a spawner, shared by its clones.
#[derive(Debug)]
struct Shared {
    context: Arc<SpawnContext>,
    /// Also held by the threads and by every [`ExitWatch`](crate::ExitWatch).
    queue: Arc<SpawnQueue>,
    /// Bounds the queue. A thread releases the permit when it takes the job. Callers without a permit
    /// wait in FIFO order; dropping their future cancels the wait.
    permits: Arc<Semaphore>,
    /// With their numbers in the queue.
    threads: Mutex<Vec<(usize, JoinHandle<()>)>>,
    start_timeout: Duration,
}

impl Spawner {
    /// Detects the host's features and starts the threads. Fails if the requested kind of process tree
    /// is unavailable.
    pub fn new(options: SpawnerOptions) -> io::Result<Self> {
        let context = SpawnContext::detect(&options)?;
        // If a thread cannot be started, dropping this ends the others.
        let shared = Shared {
            context: Arc::new(context),
            queue: Arc::new(SpawnQueue::default()),
            // One queued job per thread, so that no thread idles between jobs.
            permits: Arc::new(Semaphore::new(THREADS)),
            threads: Mutex::default(),
            start_timeout: options.start_timeout,
        };
        shared.start_missing_threads()?;
        Ok(Self(Arc::new(shared)))
    }

    /// Starts a program; resolves once it runs. Dropping the future undoes the start. A start that takes
    /// longer than [`SpawnerOptions::start_timeout`] fails, and does not delay others.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn spawn(&self, command: Command) -> Result<Child, SpawnError> {
        let mut prepared = Prepared::new(command)?;
        // A wrapper passes descriptors to the server, which the kernel refuses to a process with a lower
        // limit than the number in flight. It sets the limits of the wrapped program itself.
        if !prepared.is_wrapper() {
            prepared.program.rlimits = Rlimits::new(&prepared.limits, self.0.context.open_files);
        }
        let name = prepared.name.clone();
        let directory = prepared.directory.clone();
        let progress = Arc::new(StartProgress::new());
        let _abandon = AbandonOnDrop(Arc::clone(&progress));
        let started = self.launch(prepared, Arc::clone(&progress));
        tokio::pin!(started);
        let waiting_since = Instant::now();
        let spawned = loop {
            match tokio::time::timeout(SLOW_AFTER, &mut started).await {
                Ok(spawned) => break spawned?,
                Err(_) => self.0.replace_hung_threads(),
            }
            let limit = self.0.start_timeout;
            match progress.running_for() {
                Some(running) if running > limit => {
                    return Err(SpawnError::unresponsive(
                        progress.stage(),
                        &name,
                        &directory,
                        limit,
                    ));
                }
                None if waiting_since.elapsed() > limit && self.0.queue.is_exhausted() => {
                    return Err(SpawnError::new(
                        SpawnErrorKind::Unresponsive,
                        &name,
                        Cause::AllHung,
                    ));
                }
                _ => {}
            }
        };
        spawned
            .register()
            .map_err(|error| SpawnError::new(SpawnErrorKind::Descriptors, &name, error.into()))
    }

    /// Queues a start and waits for its result.
    async fn launch(
        &self,
        prepared: Prepared,
        progress: Arc<StartProgress>,
    ) -> Result<SpawnedChild, SpawnError> {
        let name = prepared.name.clone();
        let stopped = || SpawnError::new(SpawnErrorKind::Stopped, &name, Cause::Stopped);
        let permits = Arc::clone(&self.0.permits);
        let permit = permits.acquire_owned().await.map_err(|_| stopped())?;
        let (reply, receiver) = oneshot::channel();
        self.0.queue.push(Job {
            prepared,
            progress,
            reply,
            permit: Some(permit),
        });
        receiver.await.map_err(|_| stopped())?
    }

    /// The kind of process tree in use.
    pub fn tree_kind(&self) -> TreeKind {
        self.0.context.trees.kind()
    }

    /// Whether processes of this spawner are, or were, in the cgroup with this id. Always `false` if its
    /// trees are no cgroups. Blocks on the cgroup file system.
    ///
    /// # Errors
    /// If the cgroups cannot be listed.
    pub fn owns_cgroup(&self, id: u64) -> io::Result<bool> {
        self.0.context.trees.owns_cgroup(id)
    }

    /// The limits that cannot be enforced for children, with the reason and the remedy. Blocks shortly
    /// when it is first called, because it tries to enable the controllers.
    pub fn unenforceable_limits(&self) -> BTreeMap<LimitName, String> {
        self.0.context.trees.unenforceable_limits()
    }

    /// The requested limits that are higher than a child can have, with the reason and the remedy.
    #[must_use]
    pub fn limits_too_high(&self, limits: &ResourceLimits) -> Vec<(LimitName, String)> {
        Rlimits::too_high(limits, self.0.context.open_files)
    }

    /// The processes that servers in the same cgroup left when they were killed, and that this spawner
    /// has killed at its start.
    pub fn ended_at_start(&self) -> &[EndedProcess] {
        &self.0.context.ended_at_start
    }
}

impl Shared {
    /// Starts threads until enough are healthy.
    fn start_missing_threads(&self) -> io::Result<()> {
        while let Some(number) = self.queue.add_thread() {
            let (context, queue) = (Arc::clone(&self.context), Arc::clone(&self.queue));
            let started = launch::start_thread(number, context, queue);
            let thread = started.inspect_err(|_| self.queue.remove_thread())?;
            let mut threads = self.threads.lock();
            threads.retain(|(_, thread)| !thread.is_finished());
            threads.push((number, thread));
        }
        Ok(())
    }

    /// Starts a thread for each that has been busy with one start for long.
    fn replace_hung_threads(&self) {
        if let Err(error) = self.start_missing_threads() {
            tracing::warn!(%error, "cannot replace a spawner thread whose start hangs");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        // A caller that waits for a start holds a handle, so each thread is idle, about to be, or hangs
        // in a start that was given up. Hanging threads end by themselves.
        for (number, thread) in self.threads.get_mut().drain(..) {
            let busy_for = || self.queue.busy_for(number);
            while busy_for().is_some_and(|busy| busy <= SLOW_AFTER) {
                thread::sleep(Duration::from_millis(1));
            }
            if busy_for().is_none() {
                let _ = thread.join();
            }
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
            raise_oom_score: true,
        };
        let (trees, ended_at_start) = TreeFactory::open(options, clone_mode)?;
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
    let child = clone::probe(options, &mut ChildStack::new()?, CloneProbe::Unshare)?;
    match exit::wait_pidfd(&child.pidfd, WaitIdOptions::empty()) {
        Some(Exit::Lost) => Err(io::Error::other(SigchldIgnored)),
        Some(Exit::Code(0)) => Ok(CloseMode::Unshare),
        _ => Ok(CloseMode::of_copied_table()),
    }
}
