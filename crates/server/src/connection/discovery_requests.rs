//! Requests about configuration, plugins and skills of the host.

use std::sync::Arc;

use outpost_protocol::{DiscoverParams, DiscoverRootsParams, EnvironmentConfigParams, Method};

use super::{dispatch::Dispatch, unparsed_request::Request};
use crate::dialects::discovery;

impl Dispatch {
    /// Serves `environmentConfig/read`, `capabilityRoots/discoverV1` and `capabilities/discoverV2`.
    pub(super) fn serve_discovery(&self, request: Request<'_>) -> Option<()> {
        let tasks = &self.connection.server.tasks;
        let files = Arc::clone(&self.files);
        match request.method {
            Method::EnvironmentConfigRead => {
                let (params, reply) = request.parse::<EnvironmentConfigParams>()?;
                tasks.spawn(discovery::read_config(files, params, reply));
            }
            Method::CapabilityRootsDiscover => {
                let (params, reply) = request.parse::<DiscoverRootsParams>()?;
                tasks.spawn(discovery::discover_roots(files, params, reply));
            }
            Method::CapabilitiesDiscover => {
                let (params, reply) = request.parse::<DiscoverParams>()?;
                tasks.spawn(discovery::discover_host(files, params, reply));
            }
            _ => return request.reject_method(),
        }
        Some(())
    }
}
