//! The executors on which MCP servers run.

use std::sync::Arc;

use outpost_client::{Executor, Pending};

/// Provides the executor on which processes run, and reconnects if it was lost.
pub trait ExecutorProvider: Send + Sync {
    /// Returns the executor. Returns the same `Arc` as long as the executor is the same.
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>>;
}

/// An executor that never changes.
impl ExecutorProvider for Arc<dyn Executor> {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        let executor = Arc::clone(self);
        Box::pin(async move { Ok(executor) })
    }
}

/// The executors of both environments.
#[derive(Clone)]
pub struct Executors {
    /// Runs local servers, as children of this process.
    pub local: Arc<dyn ExecutorProvider>,
    /// Runs remote servers, if a remote executor is configured.
    pub remote: Option<Arc<dyn ExecutorProvider>>,
}
