//! Detached work is started.

use std::time::Duration;

use anyhow::Context;
use outpost_client::{DeliveryChoice, Error, Lease, Place, Remote, RemoteOptions, Start};

use super::{Site, id, label::labelled};
use crate::render::out::note;

/// The code of params that the server doesn't allow.
const INVALID_PARAMS: i64 = -32602;
/// How long work may go on without a connection where it may not stay for ever:
/// what a server allows that wasn't told otherwise.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// The command can't be run there.
    #[error("cannot start the command: {0}")]
    Command(Error),
    /// The server can't be reached, or can't do this.
    #[error(transparent)]
    Server(#[from] anyhow::Error),
}

/// Starts a process that goes on alone, in a session of its own, and gives the
/// name by which it is found again. `command` is what it is called in lists: the
/// command line as a person would type it.
pub(crate) async fn start(site: &Site, start: Start, command: &str) -> Result<String, NotStarted> {
    let remote = connect(site, command).await?;
    let name = id::random();
    match remote.start(start.id(&name)).await {
        Ok(process) => process.detach(),
        Err(error) => {
            // An empty session would stay for ever.
            let _ = remote.close_session().await;
            return Err(NotStarted::Command(error));
        }
    }
    let id = name_of(&remote, &name)?;
    remote.close().await.map_err(anyhow::Error::new)?;
    Ok(id)
}

/// A session that stays until it is closed or, where the server doesn't allow
/// that, for as long as servers usually do.
async fn connect(site: &Site, command: &str) -> anyhow::Result<Remote> {
    let options = |lease| RemoteOptions {
        client_name: "outpost".to_owned(),
        session_label: Some(labelled(command)),
        lease,
        // Nobody acknowledges anything while nobody is there.
        delivery: DeliveryChoice::Push,
        ..RemoteOptions::default()
    };
    match site.connect(options(Lease::UntilClosed)).await {
        Err(error) if is_refused(&error) => {}
        connected => return connected,
    }
    let remote = site.connect(options(Lease::For(LONGEST))).await;
    let remote = remote.map_err(|error| match is_refused(&error) {
        true => error.context(
            "the server keeps nothing that goes on alone; start it with --max-session-ttl unlimited",
        ),
        false => error,
    })?;
    note("the server keeps it for 24h without a connection");
    Ok(remote)
}

/// Where the server gives no list, a process is found by the key of its session.
fn name_of(remote: &Remote, name: &str) -> anyhow::Result<String> {
    if remote.capabilities().session_list {
        return Ok(name.to_owned());
    }
    let session = remote.session_id();
    let session = session.context("the server has no sessions: nothing can go on alone there")?;
    Ok(id::keyed(session, name))
}

/// Whether a server doesn't allow a session to stay so long.
fn is_refused(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<Error>(),
        Some(Error::Refused {
            code: INVALID_PARAMS,
            ..
        })
    )
}
