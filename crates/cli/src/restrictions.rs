//! The sandbox and the network of a command.

use outpost_client::{NetworkPolicyParams, Sandbox, Start};
use outpost_engine::sandbox::Level;

/// The sandbox and the network of a command.
#[derive(Debug, Default)]
pub(crate) struct Restrictions {
    /// The sandbox; none for full access.
    pub(crate) sandbox: Option<Sandbox>,
    /// The network, instead of that of the sandbox.
    pub(crate) network: Option<NetworkPolicyParams>,
    /// How a local command is sandboxed.
    pub(crate) level: Level,
}

impl Restrictions {
    /// Adds the restrictions to a start.
    pub(crate) fn apply(&self, mut start: Start) -> Start {
        if let Some(sandbox) = &self.sandbox {
            start = start.sandbox(sandbox.clone());
        }
        match &self.network {
            Some(network) => start.network(network.clone()),
            None => start,
        }
    }
}
