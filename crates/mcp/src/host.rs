//! What servers see of us.

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::NotificationContext,
};
use tokio::sync::broadcast;

/// How many words about progress are kept for who reads them slowly; older ones
/// go.
const PROGRESS: usize = 64;

/// The client of one session. It offers nothing that a server could ask for.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    progress: broadcast::Sender<ProgressNotificationParam>,
}

impl Host {
    pub(crate) fn new() -> Self {
        Host {
            progress: broadcast::Sender::new(PROGRESS),
        }
    }

    /// All progress of this session from now on, of whatever call.
    pub(crate) fn progress(&self) -> broadcast::Receiver<ProgressNotificationParam> {
        self.progress.subscribe()
    }
}

impl ClientHandler for Host {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // Nobody may be waiting for anything.
        let _ = self.progress.send(params);
    }

    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("outpost", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ours)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
