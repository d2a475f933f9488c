//! `environment/info` and `environment/status`.

use outpost_protocol::{EnvironmentInfo, StatusResult};

use crate::Host;

pub(crate) fn info(host: &Host) -> &EnvironmentInfo {
    &host.info
}

/// Tells what it is like here. Whether processes can be confined is found out by
/// trying, which takes a moment the first time.
pub(crate) async fn info(server: Server, reply: Reply) {
    let found = server.engine().confining_means().await;
    let level = server.engine().sandbox_level();
    let mut info = server.host().info.clone();
    info.capabilities.sandboxed_file_streaming = found.is_ok();
    reply.send(Ok(EnvironmentInfo {
        sandbox: Some(convert::sandbox_support(level, found)),
        ..info
    }));
}

pub(crate) fn status() -> StatusResult {
    StatusResult::default()
}
