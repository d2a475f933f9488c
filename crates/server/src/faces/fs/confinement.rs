//! Who does a file operation: the server itself, or somebody behind the walls that were asked for.

use outpost_files::{Clerk, Files};
use outpost_protocol::{RpcError, SandboxParams};

use crate::{Server, convert};

/// Somebody who does operations within these limits, and can do no more than the sandbox grants.
pub(super) async fn clerk(
    server: &Server,
    sandbox: Option<&SandboxParams>,
    files: Files,
) -> Result<Clerk, RpcError> {
    let host = server.host();
    let cwd = host.info.cwd.as_path();
    let Some(policy) = sandbox.and_then(|sandbox| convert::sandbox(sandbox, cwd)) else {
        return Ok(Clerk::Here(files));
    };
    let tmpdir = host.environment.get("TMPDIR").map(ToOwned::to_owned);
    let clerk = server.engine().confined_clerk(policy, tmpdir, files).await;
    clerk.map_err(|error| convert::start_error(&error))
}
