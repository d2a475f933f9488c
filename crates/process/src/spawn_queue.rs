//! The job queue of the spawner threads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::child::SpawnedChild;
use crate::control::Control;
use crate::error::SpawnError;
use crate::exit::ExitWaiter;
use crate::prepared::Prepared;
use crate::start_progress::StartProgress;

/// How often unwatched children are polled, while there are any.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// How many programs can be started concurrently. A thread whose start hangs does not count.
pub(crate) const THREADS: usize = 2;

/// How long a start usually takes at most. A thread that takes longer is replaced.
pub(crate) const SLOW_AFTER: Duration = Duration::from_millis(500);

/// How many threads with a hanging start are replaced. Beyond that, starts wait for one of them.
const MAX_HUNG: usize = 64;

/// One start. Its permit bounds the queue: callers without a permit wait in their own task.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    /// Shared with the task that awaits the spawn.
    pub(crate) progress: Arc<StartProgress>,
    /// The task that awaits the spawn holds the receiver. If the task is gone, dropping the
    /// [`SpawnedChild`] kills the child.
    pub(crate) reply: oneshot::Sender<Result<SpawnedChild, SpawnError>>,
    /// Released when a thread takes the job.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// A child whose [`ExitWatch`](crate::ExitWatch) was dropped. It is reaped when it exits.
#[derive(Debug)]
pub(crate) struct AbandonedChild {
    pub(crate) source: ExitWaiter,
    pub(crate) control: Control,
}

/// Connects the handles of a spawner to its threads.
#[derive(Debug, Default)]
pub(crate) struct SpawnQueue {
    state: Mutex<State>,
    /// Notified for a job, an unwatched child or the shutdown.
    wake: Condvar,
}

/// The queued jobs and the spawner threads, behind one lock.
#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    unwatched: Vec<AbandonedChild>,
    closed: bool,
    threads: usize,
    /// How many threads were ever added.
    added: usize,
    /// When each busy thread took its job, by its number.
    busy: HashMap<usize, Instant>,
}

impl State {
    /// How many threads are idle or have been busy for a short time only.
    fn healthy(&self) -> usize {
        let hung = self
            .busy
            .values()
            .filter(|since| since.elapsed() > SLOW_AFTER);
        self.threads.saturating_sub(hung.count())
    }
}

impl SpawnQueue {
    pub(crate) fn push(&self, job: Job) {
        self.state.lock().jobs.push_back(job);
        self.wake.notify_one();
    }

    pub(crate) fn reap_later(&self, child: AbandonedChild) {
        self.state.lock().unwatched.push(child);
        self.wake.notify_one();
    }

    /// Registers a new thread if too few are healthy, and returns its number. The caller starts it.
    pub(crate) fn add_thread(&self) -> Option<usize> {
        let mut state = self.state.lock();
        if state.healthy() >= THREADS || state.threads >= THREADS + MAX_HUNG {
            return None;
        }
        state.threads += 1;
        state.added += 1;
        Some(state.added)
    }

    /// How long a thread has been busy with one job.
    pub(crate) fn busy_for(&self, thread: usize) -> Option<Duration> {
        let state = self.state.lock();
        state.busy.get(&thread).map(Instant::elapsed)
    }

    /// Unregisters a thread that could not be started.
    pub(crate) fn remove_thread(&self) {
        self.state.lock().threads -= 1;
    }

    /// Whether all threads hang, and no more may be started.
    pub(crate) fn is_exhausted(&self) -> bool {
        let state = self.state.lock();
        state.healthy() == 0 && state.threads >= THREADS + MAX_HUNG
    }

    /// Ends the threads. No job can be pending: a task that waits for one holds a spawner handle.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits for the next job of a thread. Returns `None` when the thread must end: the queue is closed,
    /// or the thread was replaced while its last job took long.
    pub(crate) fn next(&self, thread: usize) -> Option<Job> {
        let mut state = self.state.lock();
        state.busy.remove(&thread);
        if state.healthy() > THREADS {
            state.threads -= 1;
            return None;
        }
        loop {
            if let Some(mut job) = state.jobs.pop_front() {
                state.busy.insert(thread, Instant::now());
                job.permit = None;
                return Some(job);
            }
            let has_exited =
                |child: &mut AbandonedChild| child.control.reap(&child.source).is_some();
            let reaped: Vec<_> = state.unwatched.extract_if(.., has_exited).collect();
            if !reaped.is_empty() {
                // Dropping the last reference to a tree releases it, which must not happen under
                // the lock.
                drop(state);
                drop(reaped);
                state = self.state.lock();
                continue;
            }
            if state.closed {
                return None;
            }
            if state.unwatched.is_empty() {
                self.wake.wait(&mut state);
            } else {
                self.wake.wait_for(&mut state, REAP_INTERVAL);
            }
        }
    }
}
