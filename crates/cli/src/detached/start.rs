//! Detached work is started.

use anyhow::Context;
use outpost_client::{DeliveryChoice, Error, Lease, Place, Remote, RemoteOptions, Start};

use super::{Site, id, label::labelled};

/// The code of params that the server doesn't allow.
const INVALID_PARAMS: i64 = -32602;

/// Starts a process that goes on alone, in a session of its own, and gives the
/// name by which it is found again. `command` is what it is called in lists: the
/// command line as a person would type it.
pub(crate) async fn start(site: &Site, start: Start, command: &str) -> anyhow::Result<String> {
    let options = RemoteOptions {
        client_name: "outpost".to_owned(),
        session_label: Some(labelled(command)),
        lease: Lease::UntilClosed,
        // Nobody acknowledges anything while nobody is there.
        delivery: DeliveryChoice::Push,
        ..RemoteOptions::default()
    };
    let remote = site.connect(options).await.map_err(explained)?;
    let name = id::random();
    match remote.start(start.id(&name)).await {
        Ok(process) => process.detach(),
        Err(error) => {
            // An empty session would stay for ever.
            let _ = remote.close_session().await;
            return Err(error).context("cannot start the command");
        }
    }
    let id = name_of(&remote, &name)?;
    remote.close().await?;
    Ok(id)
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

/// Servers have to be told that a session may stay.
fn explained(error: anyhow::Error) -> anyhow::Error {
    let refused = error.chain().any(|cause| {
        matches!(
            cause.downcast_ref::<Error>(),
            Some(Error::Refused {
                code: INVALID_PARAMS,
                ..
            })
        )
    });
    if refused {
        error.context(
            "the server keeps nothing that goes on alone; start it with --max-session-ttl unlimited",
        )
    } else {
        error
    }
}
