//! The order of requests about processes of one namespace.

use outpost_rpc::Lanes;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio_util::task::TaskTracker;

/// Requests about the same process take effect one after the other; control
/// passes whatever waits.
pub(crate) struct Order {
    /// Requests about a process, in order.
    ordinary: Lanes<String>,
    /// Control of a process, in order, past whatever waits in its lane.
    control: Lanes<String>,
    /// Reads of a process, in order, past everything but its starts.
    reads: Lanes<String>,
}

impl Order {
    /// No requests yet. What was received takes effect even if the connection
    /// dies, so the tasks belong to somebody who outlives it.
    pub(crate) fn new(tasks: &TaskTracker) -> Self {
        Order {
            ordinary: Lanes::new(tasks.clone()),
            control: Lanes::new(tasks.clone()),
            reads: Lanes::new(tasks.clone()),
        }
    }

    /// Runs a request behind those about the same process.
    pub(crate) async fn run(&self, key: String, job: impl Future<Output = ()> + Send + 'static) {
        self.ordinary.run(key, job).await;
    }

    /// Runs control of a process past whatever waits in its lane. What has to
    /// wait for a start is still followed by what was sent after it.
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

    /// Runs the start of a process behind the requests about it; reads that are
    /// sent after it wait for it too.
    pub(crate) async fn run_start(
        &self,
        key: String,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run_in(&self.ordinary, key, &self.reads, job).await;
    }

    /// Runs a read behind the starts of its process. Writes may wait for as long
    /// as the process likes, and have nothing to do with what is read; so only
    /// what is sent after a read waits for it.
    pub(crate) async fn run_read(
        &self,
        key: String,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run_in(&self.reads, key, &self.ordinary, job).await;
    }

    /// Runs a job in one lane, and lets another wait until it has taken effect.
    async fn run_in(
        &self,
        lane: &Lanes<String>,
        key: String,
        other: &Lanes<String>,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        let (done, mut taken_effect) = oneshot::channel::<()>();
        let job = async move {
            job.await;
            drop(done);
        };
        lane.run(key.clone(), job).await;
        if taken_effect.try_recv() == Err(TryRecvError::Closed) {
            return;
        }
        let behind = async move {
            // It is only ever dropped.
            let _ = taken_effect.await;
        };
        other.run(key, behind).await;
    }
}
