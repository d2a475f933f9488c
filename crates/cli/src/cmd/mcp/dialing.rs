//! Servers on an executor that is connected to when it is needed.

use std::sync::Arc;

use outpost_client::{Error, Place, Remote, RemoteOptions, Standing};
use outpost_mcp::{Command, ExecutorLauncher, Launcher, Launching, Limits, Placing};
use tokio::sync::Mutex;

use crate::target;

/// Connects when the first server is started, and again for whoever comes after
/// the connection was lost for good.
pub(super) struct Dialing {
    on: String,
    remote: Mutex<Option<Remote>>,
}

impl Dialing {
    pub(super) fn new(on: String) -> Self {
        Dialing {
            on,
            remote: Mutex::new(None),
        }
    }

    async fn remote(&self) -> Result<Remote, Error> {
        let mut known = self.remote.lock().await;
        if let Some(remote) = &*known
            && !matches!(*remote.standing().borrow(), Standing::Failed { .. })
        {
            return Ok(remote.clone());
        }
        let options = RemoteOptions {
            client_name: "outpost mcp".to_owned(),
            ..RemoteOptions::default()
        };
        let remote = target::reach(&self.on, options).await?;
        *known = Some(remote.clone());
        Ok(remote)
    }

    /// Leaves the executor in good order.
    pub(super) async fn close(&self) {
        if let Some(remote) = self.remote.lock().await.take() {
            // What is left there goes with the session.
            let _ = remote.close_session().await;
            let _ = remote.close().await;
        }
    }
}

impl Launcher for Dialing {
    fn launch<'a>(
        &'a self,
        name: &'a str,
        command: &'a Command,
        limits: &'a Limits,
    ) -> Launching<'a> {
        Box::pin(async move {
            let remote = self.remote().await?;
            let launcher = ExecutorLauncher::new(Arc::new(remote));
            launcher.launch(name, command, limits).await
        })
    }

    fn place(&self) -> Placing<'_> {
        Box::pin(async {
            let place: Arc<dyn Place> = Arc::new(self.remote().await?);
            Ok(place)
        })
    }
}
