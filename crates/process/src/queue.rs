//! The job queue of the spawner threads.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::child::SpawnedChild;
use crate::control::Control;
use crate::error::SpawnError;
use crate::exit::ExitSource;
use crate::prepared::Prepared;

/// How often unwatched children are polled, while there are any.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// One start. Its permit bounds the queue: callers without a permit wait in their own task.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    /// The task that awaits the spawn holds the receiver. If the task is gone, dropping the
    /// [`SpawnedChild`] kills the child.
    pub(crate) reply: oneshot::Sender<Result<SpawnedChild, SpawnError>>,
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A child whose [`ExitWatch`](crate::ExitWatch) was dropped. It is reaped when it exits.
#[derive(Debug)]
pub(crate) struct UnwatchedChild {
    pub(crate) source: ExitSource,
    pub(crate) control: Control,
}

/// Connects the handles of a spawner to its threads.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Notified for a job, an unwatched child or the shutdown.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    unwatched: Vec<UnwatchedChild>,
    closed: bool,
}

impl Queue {
    pub(crate) fn push(&self, job: Job) {
        self.state.lock().jobs.push_back(job);
        self.wake.notify_one();
    }

    pub(crate) fn reap_later(&self, child: UnwatchedChild) {
        self.state.lock().unwatched.push(child);
        self.wake.notify_one();
    }

    /// Ends the threads. No job can be pending: a task that waits for one holds a spawner handle.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits for the next job. Returns `None` when the queue is closed.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            let has_exited =
                |child: &mut UnwatchedChild| child.control.reap(&child.source).is_some();
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
