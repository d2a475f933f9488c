//! Starts and terminates an MCP server or a command so that it can exit gracefully.

use std::time::Duration;

use outpost_client::{Error, Executor, Process, Start, Terminate};
use tokio::time::timeout;

/// Grace period between SIGTERM and SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// Starts a process with a grace period for its termination.
///
/// Servers that don't announce the grace period kill at once.
pub async fn start_with_grace(executor: &dyn Executor, start: Start) -> Result<Process, Error> {
    match executor.start(start.clone().kill_grace(KILL_GRACE)).await {
        Err(Error::Unsupported { .. }) => executor.start(start).await,
        result => result,
    }
}

/// Terminates a process with its whole tree, including leftover processes of one that
/// has exited. Returns once the request is accepted; the termination continues. `grace`
/// replaces the grace period given at the start.
pub async fn terminate(process: &Process, grace: Option<Duration>) -> Result<(), Error> {
    let mut options = Terminate::new().tree();
    if let Some(grace) = grace {
        options = options.grace(grace);
    }
    let result = match process.terminate_with(options).await {
        // Older servers terminate running processes only, without a grace period.
        Err(Error::Unsupported { .. }) => process.terminate().await,
        result => result,
    };
    match result {
        // A process that the executor has forgotten has ended.
        Ok(_) | Err(Error::UnknownProcess { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Closes a server's stdin, waits for its exit, at most for `within`, and terminates it.
///
/// A server that reads its stdin to the end has then seen all earlier messages.
pub(crate) async fn shut_down(process: &Process, within: Duration) -> Result<(), Error> {
    let exit = async {
        // Fails if stdin is closed already; then no exit is expected.
        if process.close_stdin().await.is_ok() {
            let _ = process.wait().await;
        }
    };
    let _ = timeout(within, exit).await;
    terminate(process, None).await?;
    // Dropping the last handle would terminate the process a second time.
    process.detach();
    Ok(())
}
