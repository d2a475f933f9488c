//! Ordered execution of jobs per key.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use parking_lot::Mutex;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio_util::task::TaskTracker;

/// A job. Boxed by the caller, whose future lives as long as a connection and would have space
/// for every kind of job otherwise.
pub type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs jobs with the same key one after the other, in order of arrival, and jobs with
/// different keys concurrently.
///
/// A job that completes at its first poll runs in the caller's task; a job that has to
/// wait gets a task of its own. The tasks belong to the tracker and run to completion
/// even if the caller is dropped.
pub struct Lanes<K> {
    /// The keys with a running job, and the jobs queued behind it.
    busy: Arc<Mutex<HashMap<K, VecDeque<GuardedJob>>>>,
    tracker: TaskTracker,
}

/// A job, and what is dropped when it is done.
struct GuardedJob {
    job: Job,
    guard: Option<oneshot::Sender<()>>,
}

impl GuardedJob {
    async fn run(self) {
        self.job.await;
        drop(self.guard);
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> Lanes<K> {
    /// Creates lanes whose tasks belong to `tracker`.
    #[must_use]
    pub fn new(tracker: TaskTracker) -> Self {
        Lanes {
            busy: Arc::default(),
            tracker,
        }
    }

    /// Runs a job behind those with the same key. Returns once the job is done or has to
    /// wait.
    pub async fn run(&self, key: K, job: Job) {
        self.run_guarded(key, GuardedJob { job, guard: None }).await;
    }

    async fn run_guarded(&self, key: K, mut guarded: GuardedJob) {
        {
            let mut busy = self.busy.lock();
            if let Some(queued) = busy.get_mut(&key) {
                queued.push_back(guarded);
                return;
            }
            busy.insert(key.clone(), VecDeque::new());
        }
        let done = poll_fn(|cx| Poll::Ready(guarded.job.as_mut().poll(cx).is_ready())).await;
        if done {
            match next_job(&self.busy, &key) {
                None => return,
                Some(next) => guarded = next,
            }
        }
        let busy = Arc::clone(&self.busy);
        self.tracker.spawn(async move {
            guarded.run().await;
            while let Some(next) = next_job(&busy, &key) {
                next.run().await;
            }
        });
    }
}

/// Takes the next job of a lane. Removes the lane if there is none.
fn next_job<K: Hash + Eq>(
    busy: &Mutex<HashMap<K, VecDeque<GuardedJob>>>,
    key: &K,
) -> Option<GuardedJob> {
    let mut busy = busy.lock();
    let next = busy.get_mut(key).and_then(VecDeque::pop_front);
    if next.is_none() {
        busy.remove(key);
    }
    next
}

/// Runs the requests about each process of one scope in order. Control requests overtake
/// requests that wait.
pub struct ProcessLanes {
    /// Starts and writes.
    ordinary: Lanes<String>,
    /// Signals, resizes and terminations; they overtake `ordinary`.
    control: Lanes<String>,
    /// Reads; they wait for starts only.
    reads: Lanes<String>,
}

impl ProcessLanes {
    /// Creates empty lanes. A received request takes effect even if the connection is lost,
    /// so `tasks` must outlive the connection.
    #[must_use]
    pub fn new(tasks: &TaskTracker) -> Self {
        ProcessLanes {
            ordinary: Lanes::new(tasks.clone()),
            control: Lanes::new(tasks.clone()),
            reads: Lanes::new(tasks.clone()),
        }
    }

    /// Runs a request after earlier requests about the same process.
    pub async fn run(&self, key: String, job: Job) {
        self.ordinary.run(key, job).await;
    }

    /// Runs a control request ahead of waiting requests. If it `waits` for a start, later
    /// ordinary requests wait for it.
    pub async fn run_control(&self, key: String, waits: bool, job: Job) {
        if waits {
            run_before(&self.control, &self.ordinary, key, job).await;
        } else {
            self.control.run(key, job).await;
        }
    }

    /// Runs a start after earlier requests about the process. Later reads wait for it.
    pub async fn run_start(&self, key: String, job: Job) {
        run_before(&self.ordinary, &self.reads, key, job).await;
    }

    /// Runs a read after earlier starts of the process, but not after earlier writes, which
    /// may block for as long as the process does not read. Later ordinary requests wait for
    /// the read.
    pub async fn run_read(&self, key: String, job: Job) {
        run_before(&self.reads, &self.ordinary, key, job).await;
    }
}

/// Runs a job in `lanes`, and blocks `other` until it is done.
async fn run_before(lanes: &Lanes<String>, other: &Lanes<String>, key: String, job: Job) {
    let (guard, mut done) = oneshot::channel::<()>();
    let guard = Some(guard);
    lanes
        .run_guarded(key.clone(), GuardedJob { job, guard })
        .await;
    if done.try_recv() == Err(TryRecvError::Closed) {
        return;
    }
    let wait = Box::pin(async move {
        // Nothing is ever sent; the guard is dropped when the job is done.
        let _ = done.await;
    });
    other.run(key, wait).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn same_key_runs_in_order_and_other_keys_pass() {
        let lanes = Lanes::new(TaskTracker::new());
        let (log, mut seen) = mpsc::channel(10);
        let (release, gate) = oneshot::channel::<()>();
        let note = |what: &'static str| {
            let log = log.clone();
            Box::pin(async move { log.send(what).await.unwrap() })
        };
        let first = note("a1");
        let gated = async move {
            gate.await.unwrap();
            first.await;
        };
        lanes.run("a", Box::pin(gated)).await;
        lanes.run("a", note("a2")).await;
        lanes.run("b", note("b1")).await;
        assert_eq!(seen.recv().await, Some("b1"));
        release.send(()).unwrap();
        assert_eq!(seen.recv().await, Some("a1"));
        assert_eq!(seen.recv().await, Some("a2"));
        lanes.run("a", note("a3")).await;
        assert_eq!(seen.try_recv(), Ok("a3"), "a free lane runs at once");
    }
}
