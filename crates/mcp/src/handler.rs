//! The client's side of the MCP handshake, and progress notifications.

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::NotificationContext,
};
use tokio::sync::broadcast;

/// Progress notifications buffered for a slow receiver; older ones are dropped.
const PROGRESS_BUFFER: usize = 64;

/// Handles requests and notifications of a server. Declares no client capabilities.
#[derive(Clone, Debug)]
pub(crate) struct NotificationHandler {
    progress: broadcast::Sender<ProgressNotificationParam>,
}

impl NotificationHandler {
    pub(crate) fn new() -> Self {
        NotificationHandler {
            progress: broadcast::Sender::new(PROGRESS_BUFFER),
        }
    }

    /// Subscribes to the progress of all calls in this session.
    pub(crate) fn progress(&self) -> broadcast::Receiver<ProgressNotificationParam> {
        self.progress.subscribe()
    }
}

impl ClientHandler for NotificationHandler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // Fails if no call is in progress.
        let _ = self.progress.send(params);
    }

    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("outpost", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), implementation)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
