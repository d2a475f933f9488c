//! `environment/info` and `environment/status`.

use outpost_protocol::{EnvironmentInfo, StatusResult};

use crate::Host;

pub(crate) fn info(host: &Host) -> &EnvironmentInfo {
    &host.info
}

pub(crate) fn status() -> StatusResult {
    StatusResult::default()
}
