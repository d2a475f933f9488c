//! Who does a file operation: the server itself, or somebody behind the walls that were asked for.

use outpost_engine::{Departure, Purpose};
use outpost_files::{Clerk, Files};
use outpost_protocol::{RpcError, SandboxParams};

use crate::{Server, convert};

/// Somebody who does operations within these limits, and can do no more than the sandbox grants.
pub(super) async fn clerk(
    server: &Server,
    sandbox: Option<&SandboxParams>,
    purpose: Purpose,
    files: Files,
) -> Result<(Clerk, Departure), RpcError> {
    let (host, engine) = (server.host(), server.engine());
    let cwd = host.info.cwd.as_path();
    let Some(policy) = sandbox.and_then(|sandbox| convert::sandbox(sandbox, cwd)) else {
        return Ok((engine.free_clerk(files), Departure::default()));
    };
    let tmpdir = host.environment.get("TMPDIR").map(ToOwned::to_owned);
    let clerk = engine.confined_clerk(policy, tmpdir, purpose, files);
    clerk.await.map_err(|error| convert::start_error(&error))
}
