//! The handle that starts programs.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, oneshot};

use crate::child::Child;
use crate::command::Command;
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::keeper::KeeperCommand;
use crate::means::Means;
use crate::prepared::Prepared;
use crate::queue::{Job, Queue};
use crate::tree::{TreeChoice, TreeKind};
use crate::worker;

/// How a spawner is set up.
#[derive(Clone, Debug)]
pub struct SpawnerOptions {
    /// How many programs can be started at the same moment.
    pub threads: usize,
    /// How trees are kept together.
    pub trees: TreeChoice,
    /// What keeps them where that is a process of its own; without it there is no such kind.
    pub keeper: Option<KeeperCommand>,
    /// How many open files a child may have, soft and hard limit; none leaves it the server's. For
    /// a server that has raised its own soft limit and gives children the original back.
    pub child_open_files: Option<(u64, u64)>,
}

impl Default for SpawnerOptions {
    fn default() -> Self {
        Self {
            threads: 2,
            trees: TreeChoice::Auto,
            keeper: None,
            child_open_files: None,
        }
    }
}

/// A handle on a few permanent threads that start programs. When the last clone goes they end, and
/// children go on; with keepers, only those that somebody holds a part of.
#[derive(Clone, Debug)]
pub struct Spawner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    means: Arc<Means>,
    /// The threads hold it too, and every [`ExitWatch`](crate::ExitWatch).
    queue: Arc<Queue>,
    /// Bounds the queue: a thread gives the permit back when it has answered. Who gets none waits
    /// in line, and leaves the line by being dropped.
    permits: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

impl Spawner {
    /// Looks what this host can do and starts the threads. Fails where it has no trees of the kind
    /// that was asked for.
    pub fn new(options: SpawnerOptions) -> io::Result<Self> {
        let means = Means::find(&options)?;
        let threads = options.threads.max(1);
        // From here on a failure drops it, which ends the threads there are.
        let mut shared = Shared {
            means: Arc::new(means),
            queue: Arc::new(Queue::default()),
            // One under way and one waiting for each thread, so that none idles between two.
            permits: Arc::new(Semaphore::new(2 * threads)),
            threads: Vec::with_capacity(threads),
        };
        for _ in 0..threads {
            let thread = worker::start(Arc::clone(&shared.means), Arc::clone(&shared.queue))?;
            shared.threads.push(thread);
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Starts a program; resolves once it runs. When the future is dropped the start is undone,
    /// whatever it takes.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub async fn spawn(&self, command: Command) -> Result<Child, SpawnError> {
        let prepared = Prepared::new(command)?;
        let program = prepared.program.clone();
        let stopped = |_| SpawnError::new(SpawnErrorKind::Stopped, &program, Cause::Stopped);
        let permits = Arc::clone(&self.0.permits);
        let permit = permits.acquire_owned().await.map_err(|_| stopped(()))?;
        let (reply, answer) = oneshot::channel();
        self.0.queue.push(Job {
            prepared,
            reply,
            _permit: permit,
        });
        let newborn = answer.await.map_err(|_| stopped(()))??;
        newborn
            .register()
            .map_err(|error| SpawnError::new(SpawnErrorKind::Descriptors, &program, error.into()))
    }

    /// What keeps the trees together on this host.
    pub fn tree_kind(&self) -> TreeKind {
        self.0.means.nursery.kind()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        // They have nothing to do, since who waits for a start holds a handle.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
