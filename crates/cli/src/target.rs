//! Executors by the value of `--on`: local, or a server.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use outpost_client::{
    ConnectionState, Error, Executor, LocalExecutor, LocalOptions, Process, RemoteExecutor,
    RemoteOptions, Terminate, TreeChoice,
};
use outpost_engine::sandbox::Level;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::timeout;

use crate::{
    cmd::hidden::{confine_command, subreaper_command},
    console::Signals,
    endpoint::Endpoint,
    exit,
    render::out::note,
};

/// Timeout for a lost connection to return after the command has exited. After that, leftover
/// processes end with the session's lease.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before a note about the wait is printed.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// Timeout for a server to end a session: it terminates, waits 2 s, then kills.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Processes that may still run in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// No process was started.
    None,
    /// The command has exited; it may have left processes.
    Processes,
    /// The result of the start is unknown.
    UnknownStart,
}

/// A process that isn't started.
pub(crate) struct StartFailure {
    pub(crate) code: ExitCode,
    /// The result of closing the executor, for the caller to report: only the caller knows whether
    /// a write to stderr may block.
    pub(crate) closed: Result<(), Error>,
}

/// The executor of a command.
pub(crate) struct Target {
    pub(crate) executor: Arc<dyn Executor>,
    /// The executor, if it is a server.
    pub(crate) remote: Option<RemoteExecutor>,
}

impl Target {
    /// Connects to the server that `--on` names; without it, creates the local executor.
    pub(crate) async fn open(
        server: Option<&Endpoint>,
        client_name: &str,
        local: impl FnOnce() -> anyhow::Result<LocalExecutor>,
    ) -> anyhow::Result<Self> {
        let Some(server) = server else {
            return Ok(Target {
                executor: Arc::new(local()?),
                remote: None,
            });
        };
        let options = RemoteOptions::default().client_name(client_name);
        let remote = server.connect(options).await;
        let remote = remote.map_err(|error| {
            let context = connect_context(server, &error);
            anyhow::Error::new(error).context(context)
        })?;
        Ok(Target {
            executor: Arc::new(remote.clone()),
            remote: Some(remote),
        })
    }

    /// Waits for the start of a process, unless a signal arrives that would end this program. If it
    /// isn't started, the executor is closed.
    pub(crate) async fn started(
        &self,
        starting: impl Future<Output = Result<Process, Error>>,
        program: &str,
        signals: &mut Signals,
    ) -> Result<Process, StartFailure> {
        let code = match signals.unless_ended(starting).await {
            Ok(Ok(process)) => return Ok(process),
            Ok(Err(error)) => exit::not_started(program, &error),
            Err(signal) => exit::of_signal(signal),
        };
        // The result of the start may be unknown; disconnecting ends the process.
        let closing = self.close(Leftovers::UnknownStart);
        let closed = signals.unless_ended(closing).await.unwrap_or(Ok(()));
        Err(StartFailure { code, closed })
    }

    /// Closes the executor with everything that runs in it. Local processes that don't end in time
    /// are killed, which is an error.
    pub(crate) async fn close(&self, leftovers: Leftovers) -> Result<(), Error> {
        match &self.remote {
            Some(remote) => {
                disconnect(remote, leftovers).await;
                Ok(())
            }
            None => self.executor.close().await,
        }
    }
}

/// The context of an error of connecting to a server.
fn connect_context(server: &Endpoint, error: &Error) -> String {
    match error {
        Error::Disconnected { .. } if server.is_launched() => {
            "cannot use the server launched with --on: its command must run \
             `outpost serve --listen stdio://` and print nothing else"
                .to_owned()
        }
        _ => server.origin(),
    }
}

/// Disconnects from a server. The session is closed, with everything that runs in it, if the server
/// can be reached; otherwise it ends with its lease. A launched server is ended too, and waited
/// for.
pub(crate) async fn disconnect(remote: &RemoteExecutor, leftovers: Leftovers) {
    if wait_connected(remote, leftovers).await && remote.capabilities().process_list {
        let _ = timeout(CLOSE_TIMEOUT, remote.close_session()).await;
    }
    let _ = remote.close().await;
}

/// Ends leftover processes on a server that can end trees but not sessions.
pub(crate) async fn end_tree(process: &Process, remote: &RemoteExecutor, within: Duration) {
    let can = remote.capabilities();
    if can.terminate_tree && !can.process_list {
        let tree = Terminate::new().tree();
        let _ = timeout(within, process.terminate_with(tree)).await;
    }
}

/// Waits for a lost connection, depending on the leftovers.
async fn wait_connected(remote: &RemoteExecutor, leftovers: Leftovers) -> bool {
    match leftovers {
        Leftovers::None => *remote.connection_state().borrow() == ConnectionState::Connected,
        Leftovers::Processes => {
            let connected = timeout(RECONNECT_TIMEOUT, remote.wait_connected()).await;
            connected.is_ok_and(|connected| connected.is_ok())
        }
        // The executor stops reconnecting after its timeout. Until then, only this connection can end
        // the process.
        Leftovers::UnknownStart => {
            if let Ok(connected) = timeout(NOTICE_DELAY, remote.wait_connected()).await {
                return connected.is_ok();
            }
            note("waiting for the connection, to end a process that may have been started");
            remote.wait_connected().await.is_ok()
        }
    }
}

/// Creates the local executor. Processes start in `cwd`, or in the current directory.
pub(crate) fn local(cwd: Option<PathBuf>, level: Level) -> anyhow::Result<LocalExecutor> {
    // A subreaper ends the tree even if this program is killed; a cgroup would stay.
    local_with(cwd, level, &[TreeChoice::Subreaper, TreeChoice::Auto])
}

/// Creates a local executor that uses cgroups if it can, for limits that need them.
pub(crate) fn local_with_cgroups(
    cwd: Option<PathBuf>,
    level: Level,
) -> anyhow::Result<LocalExecutor> {
    local_with(cwd, level, &[TreeChoice::Auto])
}

/// Creates a local executor with the first kind of process trees that works.
fn local_with(
    cwd: Option<PathBuf>,
    level: Level,
    choices: &[TreeChoice],
) -> anyhow::Result<LocalExecutor> {
    let cwd = match cwd {
        Some(cwd) => cwd,
        None => std::env::current_dir().context("cannot determine the current directory")?,
    };
    outpost_engine::restore_sigchld().context("cannot restore the default action of SIGCHLD")?;
    let child_open_files = raise_open_files();
    let options = |trees| LocalOptions {
        trees,
        subreaper: Some(subreaper_command()),
        sandbox_helper: Some(confine_command(None)),
        sandbox_level: level,
        child_open_files,
        moves_own_cgroup: true,
        cwd: Some(cwd.clone()),
        ..LocalOptions::default()
    };
    let mut created = LocalExecutor::new(options(choices[0]));
    for choice in &choices[1..] {
        created = created.or_else(|_| LocalExecutor::new(options(*choice)));
    }
    Ok(created?)
}

/// Raises the soft limit to the hard limit, since each process needs several descriptors. Returns
/// the limits (soft, hard) for children.
pub(crate) fn raise_open_files() -> Option<(u64, u64)> {
    let before = getrlimit(Resource::Nofile);
    let (Some(soft), Some(hard)) = (before.current, before.maximum) else {
        return None;
    };
    let mut ours = hard;
    if soft < hard {
        let raised = Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, soft, "failed to raise the limit on open files");
            ours = soft;
        }
    }
    Some(child_open_files(soft, ours))
}

/// Returns the limits of children for the original soft limit, because programs that use `select` or
/// close every possible descriptor rely on it, and for our own limit.
///
/// The hard limit of a child is half of ours. The kernel refuses to send a descriptor over a unix socket
/// if the user has more of them in flight than the sender may have open, and a child can keep as many in
/// flight as its limit allows. We need to send some for every start.
fn child_open_files(soft: u64, ours: u64) -> (u64, u64) {
    let hard = ours / 2;
    (soft.min(hard), hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_may_open_half_as_many_files_as_we() {
        assert_eq!(child_open_files(1024, 1 << 20), (1024, 1 << 19));
        assert_eq!(child_open_files(20_000, 20_000), (10_000, 10_000));
    }
}
