//! Launches MCP servers on an executor that is connected on demand.

use std::sync::Arc;

use outpost_client::{ConnectionState, Error, Executor, Pending, RemoteExecutor, RemoteOptions};
use outpost_mcp::ExecutorProvider;
use tokio::sync::Mutex;

use crate::target;

/// Connects when the first server is started, and again after the connection has failed for good.
pub(super) struct LazyRemote {
    on: String,
    remote: Mutex<Option<RemoteExecutor>>,
}

impl LazyRemote {
    pub(super) fn new(on: String) -> Self {
        LazyRemote {
            on,
            remote: Mutex::new(None),
        }
    }

    async fn remote(&self) -> Result<RemoteExecutor, Error> {
        let mut known = self.remote.lock().await;
        if let Some(remote) = &*known
            && !matches!(
                *remote.connection_state().borrow(),
                ConnectionState::Failed { .. }
            )
        {
            return Ok(remote.clone());
        }
        let options = RemoteOptions::default().client_name("outpost mcp");
        let remote = target::reach(&self.on, options).await?;
        *known = Some(remote.clone());
        Ok(remote)
    }

    /// Disconnects from the executor.
    pub(super) async fn close(&self) {
        if let Some(remote) = self.remote.lock().await.take() {
            // Leftover processes end with the session.
            let _ = remote.close_session().await;
            let _ = remote.close().await;
        }
    }
}

impl ExecutorProvider for LazyRemote {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        Box::pin(async {
            let executor: Arc<dyn Executor> = Arc::new(self.remote().await?);
            Ok(executor)
        })
    }
}
