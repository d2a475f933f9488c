//! Selects the executor of a file operation.

use outpost_engine::{WorkerExit, sandbox::WorkerAccess};
use outpost_files::{FileExecutor, Files};
use outpost_protocol::{RpcError, SandboxParams};

use crate::{Server, convert};

/// An executor in this process, or in a sandboxed worker if there is a sandbox to enforce.
pub(super) async fn file_executor(
    server: &Server,
    sandbox: Option<&SandboxParams>,
    access: WorkerAccess,
    files: Files,
) -> Result<(FileExecutor, WorkerExit), RpcError> {
    let (host, engine) = (server.host(), server.engine());
    let cwd = host.info.cwd.as_path();
    let Some(policy) = sandbox.and_then(|sandbox| sandbox.clone().into_policy(cwd)) else {
        return Ok((
            engine.unconfined_file_executor(files),
            WorkerExit::default(),
        ));
    };
    let tmpdir = host.environment.get("TMPDIR").map(ToOwned::to_owned);
    let worker = engine.sandboxed_file_executor(policy, tmpdir, access, files);
    worker.await.map_err(|error| convert::start_error(&error))
}
