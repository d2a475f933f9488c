//! Connects to the user's server, and starts it if necessary.

use anyhow::Context;
use outpost_client::{Error, RemoteExecutor, RemoteOptions};

use super::{directory::RuntimeDirectory, launch::launch};
use crate::render::out::note;

/// Maximum number of starts. An idle server may exit before it is used.
const MAX_STARTS: usize = 3;

/// Behaviour if no server is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartIfMissing {
    /// Start one.
    Yes,
    /// Fail.
    No,
}

/// Connects to the user's server, which accepts requests when this returns.
pub(crate) async fn connect(
    start: StartIfMissing,
    options: RemoteOptions,
) -> anyhow::Result<RemoteExecutor> {
    if let Some(remote) = find(options.clone()).await? {
        return Ok(remote);
    }
    if start == StartIfMissing::No {
        anyhow::bail!("your server is not running; `outpost run --detach` starts one");
    }
    let directory = RuntimeDirectory::of_user();
    directory.create()?;
    let _lock = directory.lock().await?;
    let mut launched = Ok(());
    for _ in 0..MAX_STARTS {
        // Another command may have started it during the wait for the lock.
        if let Some(remote) = try_connect(&directory, options.clone()).await? {
            return Ok(remote);
        }
        launched = launch(&directory).await;
        if launched.is_err() {
            break;
        }
    }
    // The start may have failed because a server is running after all.
    match try_connect(&directory, options).await? {
        Some(remote) => Ok(remote),
        None => {
            launched?;
            anyhow::bail!("your server exits as soon as it is started")
        }
    }
}

/// Connects to the user's server, if it is running.
pub(crate) async fn find(options: RemoteOptions) -> anyhow::Result<Option<RemoteExecutor>> {
    let directory = RuntimeDirectory::of_user();
    if directory.exists()? {
        try_connect(&directory, options).await
    } else {
        Ok(None)
    }
}

async fn try_connect(
    directory: &RuntimeDirectory,
    options: RemoteOptions,
) -> anyhow::Result<Option<RemoteExecutor>> {
    match RemoteExecutor::connect(&directory.url()?, options).await {
        Ok(remote) => {
            let theirs = remote.server_info().map(|info| info.version.as_str());
            if let Some(message) = version_warning(env!("CARGO_PKG_VERSION"), theirs) {
                note(&message);
            }
            Ok(Some(remote))
        }
        Err(error) if is_not_running(&error) => Ok(None),
        Err(error) => Err(error).context("cannot connect to your server"),
    }
}

/// Returns whether no server is running: there is no socket, nothing accepts on it, or the server
/// was just exiting.
fn is_not_running(error: &Error) -> bool {
    match error {
        Error::Disconnected { .. } => true,
        Error::Unreachable { source, .. } => source.is_nobody_there(),
        _ => false,
    }
}

/// A warning about a server of another version, which may not support every request.
fn version_warning(ours: &str, theirs: Option<&str>) -> Option<String> {
    let theirs = theirs.filter(|theirs| *theirs != ours)?;
    Some(format!(
        "your server is version {theirs}, this program is {ours}; \
         `outpost stop` stops it with everything it runs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_mismatch_is_reported() {
        assert_eq!(version_warning("1.2.3", Some("1.2.3")), None);
        assert_eq!(version_warning("1.2.3", None), None);
        let message = version_warning("1.2.3", Some("1.2.2")).unwrap();
        assert!(
            message.contains("version 1.2.2, this program is 1.2.3"),
            "{message}"
        );
    }
}
