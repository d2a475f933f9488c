//! Starts detached work.

use std::time::Duration;

use anyhow::Context;
use outpost_client::{DeliveryMode, Error, Executor, Lease, RemoteExecutor, RemoteOptions, Start};

use super::{ServerTarget, id, session_label::label_for};
use crate::render::out::note;

/// Error code: the server rejects the params.
const INVALID_PARAMS: i64 = -32602;
/// The lease where an unlimited one is rejected: the default maximum of a server.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// The command can't be started.
    #[error("cannot start the command: {0}")]
    Command(Error),
    /// The server is unreachable or doesn't support this.
    #[error(transparent)]
    Server(#[from] anyhow::Error),
}

/// Starts a process in a session of its own, and returns its name. `command` is its command line,
/// for lists.
pub(crate) async fn start(
    server: &ServerTarget,
    start: Start,
    command: &str,
) -> Result<String, NotStarted> {
    let remote = connect(server, command).await?;
    let name = id::random();
    match remote.start(start.id(&name)).await {
        Ok(process) => process.detach(),
        Err(error) => {
            // An empty session would stay forever.
            let _ = remote.close_session().await;
            return Err(NotStarted::Command(error));
        }
    }
    let id = full_name(&remote, &name)?;
    remote.close().await.map_err(anyhow::Error::new)?;
    Ok(id)
}

/// Creates a session that stays until it is closed, or for [`MAX_LEASE`] if the server doesn't
/// allow that.
async fn connect(server: &ServerTarget, command: &str) -> anyhow::Result<RemoteExecutor> {
    let options = |lease| {
        RemoteOptions::default()
            .client_name("outpost")
            .session_label(label_for(command))
            .lease(lease)
            // There is no client to acknowledge anything.
            .delivery(DeliveryMode::Push)
    };
    match server.connect(options(Lease::UntilClosed)).await {
        Err(error) if is_lease_rejected(&error) => {}
        connected => return connected,
    }
    let remote = server.connect(options(Lease::For(MAX_LEASE))).await;
    let remote = remote.map_err(|error| {
        if is_lease_rejected(&error) {
            error.context(
                "the server allows no detached work; start it with --max-session-ttl unlimited",
            )
        } else {
            error
        }
    })?;
    note("the server keeps it for 24h without a connection");
    Ok(remote)
}

/// The name of the process. It contains the session id if the server doesn't list its sessions.
fn full_name(remote: &RemoteExecutor, name: &str) -> anyhow::Result<String> {
    if remote.capabilities().session_list {
        return Ok(name.to_owned());
    }
    let session = remote.session_id();
    let session = session.context("the server has no sessions, which detached work needs")?;
    Ok(id::keyed(session, name))
}

/// Returns whether the server rejects the lease.
fn is_lease_rejected(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<Error>(),
        Some(Error::Rejected {
            code: INVALID_PARAMS,
            ..
        })
    )
}
