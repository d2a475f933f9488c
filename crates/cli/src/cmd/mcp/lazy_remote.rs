//! An executor that is connected on demand.

use std::sync::Arc;

use outpost_client::{ConnectionState, Executor, Pending, RemoteExecutor, RemoteOptions};
use outpost_mcp::ExecutorProvider;
use tokio::sync::Mutex;

use crate::{
    endpoint::Endpoint,
    target::{Leftovers, disconnect},
};

/// Connects at the first use, and again after the connection has failed for good.
pub(super) struct LazyRemote {
    server: Endpoint,
    client_name: &'static str,
    remote: Mutex<Option<Arc<RemoteExecutor>>>,
}

impl LazyRemote {
    pub(super) fn new(server: Endpoint, client_name: &'static str) -> Self {
        LazyRemote {
            server,
            client_name,
            remote: Mutex::new(None),
        }
    }

    /// Disconnects. Leftover processes end with the session.
    pub(super) async fn close(&self) {
        if let Some(remote) = self.remote.lock().await.take() {
            disconnect(&remote, Leftovers::Processes).await;
        }
    }
}

impl ExecutorProvider for LazyRemote {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        Box::pin(async {
            let mut known = self.remote.lock().await;
            let is_usable = |remote: &Arc<RemoteExecutor>| {
                let state = remote.connection_state();
                !matches!(*state.borrow(), ConnectionState::Failed { .. })
            };
            let remote = match known.take().filter(is_usable) {
                Some(remote) => remote,
                None => {
                    let options = RemoteOptions::default().client_name(self.client_name);
                    Arc::new(self.server.connect(options).await?)
                }
            };
            *known = Some(Arc::clone(&remote));
            Ok(remote as Arc<dyn Executor>)
        })
    }
}
