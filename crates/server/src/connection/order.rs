//! Order of requests about the same process.

use outpost_rpc::Lanes;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio_util::task::TaskTracker;

/// Runs the requests about each process of one scope in order. Control requests overtake
/// requests that wait.
pub(crate) struct Order {
    /// Starts and writes.
    ordinary: Lanes<String>,
    /// Signals, resizes and terminations; they overtake `ordinary`.
    control: Lanes<String>,
    /// Reads; they wait for starts only.
    reads: Lanes<String>,
}

impl Order {
    /// Creates empty lanes. A received request takes effect even if the connection is lost,
    /// so `tasks` must outlive the connection.
    pub(crate) fn new(tasks: &TaskTracker) -> Self {
        Order {
            ordinary: Lanes::new(tasks.clone()),
            control: Lanes::new(tasks.clone()),
            reads: Lanes::new(tasks.clone()),
        }
    }

    /// Runs a request after earlier ones about the same process.
    pub(crate) async fn run(&self, key: String, job: impl Future<Output = ()> + Send + 'static) {
        self.ordinary.run(key, job).await;
    }

    /// Runs a control request ahead of waiting requests. If it `waits` for a start, later
    /// ordinary requests wait for it.
    pub(crate) async fn run_control(
        &self,
        key: String,
        waits: bool,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        if !waits {
            return self.control.run(key, job).await;
        }
        self.run_in(&self.control, key, &self.ordinary, job).await;
    }

    /// Runs a start after earlier requests about the process. Later reads wait for it.
    pub(crate) async fn run_start(
        &self,
        key: String,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run_in(&self.ordinary, key, &self.reads, job).await;
    }

    /// Runs a read after earlier starts of the process, but not after earlier writes, which
    /// may block for as long as the process does not read. Later ordinary requests wait for
    /// the read.
    pub(crate) async fn run_read(
        &self,
        key: String,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run_in(&self.reads, key, &self.ordinary, job).await;
    }

    /// Runs a job in `lane`, and blocks `other` until it is done.
    async fn run_in(
        &self,
        lane: &Lanes<String>,
        key: String,
        other: &Lanes<String>,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        let (guard, mut done) = oneshot::channel::<()>();
        let job = async move {
            job.await;
            drop(guard);
        };
        lane.run(key.clone(), job).await;
        if done.try_recv() == Err(TryRecvError::Closed) {
            return;
        }
        let wait = async move {
            // Nothing is ever sent; the guard is dropped when the job is done.
            let _ = done.await;
        };
        other.run(key, wait).await;
    }
}
