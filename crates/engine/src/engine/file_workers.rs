//! File workers: sandboxed helpers that perform file operations.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outpost_files::{FileExecutor, Files, InProcess, PathMasks, Sandboxed, WorkerSocket};
use outpost_process::{Child, ReadableFd};
use outpost_sandbox::{
    Floor, HelperProcess, HostResources, PrepareError, Sandbox, SandboxError, SandboxRequest,
    WorkerAccess, is_placeholder, policy::Policy,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Engine, start_retries::retry_transient};
use crate::{Peer, ServerEnvironment, StartError, process::KILL_TIMEOUT, start::sandbox_request};

/// How long an unneeded worker may take to exit. It removes unfinished files on the way.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Observes the exit of a file worker. Until it has exited, its placeholders may exist on the host.
#[derive(Clone, Debug, Default)]
pub struct WorkerExit {
    /// Cancelled when the executor of the worker is dropped.
    unneeded: CancellationToken,
    /// Cancelled when no process of the worker is left.
    exited: CancellationToken,
}

impl WorkerExit {
    /// Waits until a worker whose executor was dropped has exited, which takes a few seconds at most.
    /// Returns at once if the executor is still in use.
    pub async fn wait(&self) {
        if self.unneeded.is_cancelled() {
            self.exited.cancelled().await;
        }
    }
}

/// The client of file operations.
#[derive(Clone, Copy, Debug)]
pub struct FileClient {
    /// The peer whose processes file workers are counted as.
    pub peer: Peer,
    /// How many processes the peer may have running; `None` for no limit of its own.
    pub max_processes: Option<usize>,
    /// Starts of workers of one peer take turns by this key.
    pub key: usize,
}

impl Engine {
    /// Returns an executor of file operations.
    ///
    /// Without a policy and a floor it works in this process, unsandboxed, and placeholders of sandboxed
    /// processes count as missing. Otherwise it is a new file worker, which counts as a process of the client and
    /// exits when the executor is dropped; `environment` has the `TMPDIR` that a process would have.
    ///
    /// # Errors
    /// If a worker can't be sandboxed as requested, or there are too many processes.
    pub async fn file_executor(
        &self,
        client: FileClient,
        (policy, floor): (Option<Policy>, Option<Arc<Floor>>),
        environment: &ServerEnvironment,
        access: WorkerAccess,
        files: Files,
    ) -> Result<(FileExecutor, WorkerExit), StartError> {
        let tmpdir = environment.get("TMPDIR").map(ToOwned::to_owned);
        let key = client.peer.turn_key(client.key);
        let Some(request) = sandbox_request(policy, tmpdir, floor, key) else {
            let executor = FileExecutor::InProcess(InProcess {
                files,
                placeholders: self.placeholders(),
                is_placeholder,
            });
            return Ok((executor, WorkerExit::default()));
        };
        let shared = &self.shared;
        if shared.ending.is_cancelled() {
            return Err(StartError::SessionEnded);
        }
        let permit = self.process_permit(client.peer, client.max_processes)?;
        let limit = shared.limits.sandbox_start_timeout;
        let worker = retry_transient(limit, || self.spawn_file_worker(request.clone(), access));
        let worker = worker.await?;
        let exit = WorkerExit::default();
        let exited = exit.exited.clone().drop_guard();
        let (unneeded, ending) = (exit.unneeded.clone(), shared.ending.clone());
        shared.tasks.spawn(async move {
            watch_worker(worker.child, worker.resources, unneeded, ending).await;
            drop((permit, exited));
        });
        let socket = WorkerSocket::client(
            worker.socket,
            shared.limits.file_operation_timeout,
            exit.unneeded.clone().drop_guard(),
        );
        let socket = socket.map_err(|error| SandboxError::from(PrepareError::from(error)))?;
        let masks = PathMasks {
            denied: worker.denied,
            absent: worker.absent,
            placeholders: self.placeholders(),
        };
        let executor = FileExecutor::Sandboxed(Sandboxed {
            socket,
            files,
            masks,
        });
        Ok((executor, exit))
    }

    async fn spawn_file_worker(
        &self,
        request: SandboxRequest,
        access: WorkerAccess,
    ) -> Result<HelperProcess, StartError> {
        let limit = self.shared.limits.sandbox_start_timeout;
        let prepared = self.sandbox()?.prepare_helper(request, access, limit);
        let prepared = prepared.await?;
        Ok(prepared.start(&self.shared.spawner, limit).await?)
    }

    /// Returns the paths where placeholders may exist.
    fn placeholders(&self) -> Vec<PathBuf> {
        let sandbox = self.shared.sandbox.as_ref();
        sandbox.map(Sandbox::placeholders).unwrap_or_default()
    }
}

/// Waits for the exit of a file worker, and ends it when its executor is dropped (`unneeded`) or the
/// engine ends (`exit_cause`).
async fn watch_worker(
    mut child: Child,
    resources: HostResources,
    unneeded: CancellationToken,
    ending: CancellationToken,
) {
    let exited = tokio::select! {
        _ = child.exit.wait() => true,
        () = ending.cancelled() => false,
        () = unneeded.cancelled() => timeout(EXIT_TIMEOUT, child.exit.wait()).await.is_ok(),
    };
    if !exited {
        if let Err(error) = child.control.kill_tree() {
            tracing::warn!(%error, "cannot kill a file worker");
        }
        let _ = timeout(KILL_TIMEOUT, child.exit.wait()).await;
    }
    let init = resources.init();
    match init.and_then(|init| init.map(ReadableFd::new).transpose()) {
        Ok(Some(init)) => {
            let _ = timeout(KILL_TIMEOUT, init.readable()).await;
        }
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "cannot wait for the exit of a file worker's sandbox");
        }
    }
    child.exit.reap();
    child.control.release_tree();
    resources.release().await;
}
