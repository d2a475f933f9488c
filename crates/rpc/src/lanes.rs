//! Order where it is promised, and nowhere else.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use tokio_util::task::TaskTracker;

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Jobs with the same key run one after the other, in the order they came;
/// jobs with different keys run beside each other.
///
/// A job that needs no waiting runs at once, on the caller's own turn; only one
/// that has to wait costs a task. The tasks belong to the tracker, and finish
/// what they have even when the caller is gone.
pub struct Lanes<K> {
    /// A key is in here while one of its jobs is under way, with those behind.
    busy: Arc<Mutex<HashMap<K, VecDeque<Job>>>>,
    tracker: TaskTracker,
}

impl<K: Hash + Eq + Clone + Send + 'static> Lanes<K> {
    /// No jobs yet; tasks will belong to `tracker`.
    #[must_use]
    pub fn new(tracker: TaskTracker) -> Self {
        Lanes {
            busy: Arc::default(),
            tracker,
        }
    }

    /// Runs a job behind the ones with its key. Returns as soon as the job is
    /// done or has to wait for something.
    pub async fn run(&self, key: K, job: impl Future<Output = ()> + Send + 'static) {
        {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(behind) = busy.get_mut(&key) {
                behind.push_back(Box::pin(job));
                return;
            }
            busy.insert(key.clone(), VecDeque::new());
        }
        let mut job: Job = Box::pin(job);
        let done = poll_fn(|cx| Poll::Ready(job.as_mut().poll(cx).is_ready())).await;
        if done {
            match next_job(&self.busy, &key) {
                None => return,
                Some(next) => job = next,
            }
        }
        let busy = Arc::clone(&self.busy);
        self.tracker.spawn(async move {
            job.await;
            while let Some(next) = next_job(&busy, &key) {
                next.await;
            }
        });
    }
}

/// The next job of a lane, or none, and then the lane is free.
fn next_job<K: Hash + Eq>(busy: &Mutex<HashMap<K, VecDeque<Job>>>, key: &K) -> Option<Job> {
    let mut busy = busy.lock().unwrap_or_else(PoisonError::into_inner);
    let next = busy.get_mut(key).and_then(VecDeque::pop_front);
    if next.is_none() {
        busy.remove(key);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test]
    async fn same_key_in_order_and_others_pass() {
        let lanes = Lanes::new(TaskTracker::new());
        let (log, mut seen) = mpsc::channel(10);
        let (release, gate) = oneshot::channel::<()>();
        let note = |what: &'static str| {
            let log = log.clone();
            async move { log.send(what).await.unwrap() }
        };
        let first = note("a1");
        lanes
            .run("a", async move {
                gate.await.unwrap();
                first.await;
            })
            .await;
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
