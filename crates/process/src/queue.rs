//! What waits for a spawner thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::SpawnError;
use crate::leader::{Ended, Leader};
use crate::newborn::Newborn;
use crate::prepared::Prepared;
use crate::watch::Watch;

/// How often children that nobody watches are looked at. Only while there are such.
const ORPHAN_ROUND: Duration = Duration::from_millis(100);

/// One start. Its permit bounds the queue: whoever has none waits in its own task.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    /// The task that awaits the spawn holds the other end. When it is gone, the child is killed by
    /// [`Newborn`]'s drop.
    pub(crate) reply: oneshot::Sender<Result<Newborn, SpawnError>>,
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A child whose watch was dropped; reaped when it ends.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) watch: Watch,
    pub(crate) leader: Arc<Leader>,
}

/// Between the handles of a spawner and its threads.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes threads for a job, an orphan or the end.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    orphans: Vec<Orphan>,
    closed: bool,
}

impl Queue {
    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
        self.wake.notify_one();
    }

    pub(crate) fn adopt(&self, orphan: Orphan) {
        self.lock().orphans.push(orphan);
        self.wake.notify_one();
    }

    /// Lets the threads end. Nobody can be waiting for a job: to wait is to hold a handle.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits for the next job; none when the spawner has gone.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            let finished = state.reap_orphans();
            if !finished.is_empty() {
                // Not under the lock: it may be the last that knows a tree, and free its place.
                drop(state);
                drop(finished);
                state = self.lock();
                continue;
            }
            if state.closed {
                return None;
            }
            let woken = &self.wake;
            state = match state.orphans.is_empty() {
                true => woken.wait(state).unwrap_or_else(PoisonError::into_inner),
                false => match woken.wait_timeout(state, ORPHAN_ROUND) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                },
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock has left a list, which is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn reap_orphans(&mut self) -> Vec<Orphan> {
        let ended = |orphan: &mut Orphan| {
            let ended = orphan.leader.reap(&orphan.watch);
            !matches!(ended, Ended::NotYet)
        };
        self.orphans.extract_if(.., ended).collect()
    }
}
