//! The order of requests about processes of one namespace.

use outpost_rpc::Lanes;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// Requests about the same process take effect one after the other; control
/// passes whatever waits.
pub(crate) struct Order {
    /// Requests about a process, in order.
    ordinary: Lanes<String>,
    /// Control of a process, in order, past whatever waits in its lane.
    control: Lanes<String>,
}

impl Order {
    /// No requests yet. What was received takes effect even if the connection
    /// dies, so the tasks belong to somebody who outlives it.
    pub(crate) fn new(tasks: &TaskTracker) -> Self {
        Order {
            ordinary: Lanes::new(tasks.clone()),
            control: Lanes::new(tasks.clone()),
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
        let (done, taken_effect) = oneshot::channel::<()>();
        let job = async move {
            job.await;
            drop(done);
        };
        self.control.run(key.clone(), job).await;
        let behind = async move {
            // It is only ever dropped.
            let _ = taken_effect.await;
        };
        self.ordinary.run(key, behind).await;
    }
}
