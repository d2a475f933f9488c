//! Starts detached work.

use std::time::Duration;

use anyhow::{Context, bail};
use outpost_client::{DeliveryMode, Error, Executor, Lease, RemoteExecutor, RemoteOptions, Start};
use uuid::Uuid;

use super::{
    connect,
    session_keys::{SessionKey, SessionKeys},
    sessions::label_for,
};
use crate::{args::LimitArgs, endpoint::Endpoint, render::out::note};

const ID_ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: usize = 8;
/// Error code: the server rejects the params.
const INVALID_PARAMS: i64 = -32602;
/// The lease where an unlimited one is rejected: the default maximum of a server.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Starts a process in a session of its own, and returns its id. `command` is its command line,
/// for lists. The inner error is that of the command, the outer error that of the server.
pub(crate) async fn start(
    on: Option<&Endpoint>,
    start: Start,
    command: &str,
    limits: &LimitArgs,
) -> anyhow::Result<Result<String, Error>> {
    let remote = create_session(on, command).await?;
    if let Some(refusal) = limits.refusal(&remote).await {
        let _ = remote.close_session().await;
        bail!(refusal);
    }
    let id = random_id();
    let keys = match store_key(on, &remote, &id) {
        Ok(keys) => keys,
        Err(error) => {
            let _ = remote.close_session().await;
            return Err(error);
        }
    };
    match remote.start(start.id(&id)).await {
        Ok(process) => process.detach(),
        Err(error) => {
            if let Some(keys) = keys {
                keys.remove(&id);
            }
            // An empty session would stay forever.
            let _ = remote.close_session().await;
            return Ok(Err(error));
        }
    }
    remote.close().await?;
    Ok(Ok(id))
}

/// Creates a session that stays until it is closed, or for [`MAX_LEASE`] if the server doesn't
/// allow that.
async fn create_session(on: Option<&Endpoint>, command: &str) -> anyhow::Result<RemoteExecutor> {
    let options = |lease| {
        RemoteOptions::default()
            .client_name("outpost")
            .session_label(label_for(command))
            .lease(lease)
            // There is no client to acknowledge anything.
            .delivery(DeliveryMode::Push)
    };
    match connect(on, options(Lease::UntilClosed)).await {
        Err(error) if is_lease_rejected(&error) => {}
        connected => return connected,
    }
    let remote = connect(on, options(Lease::For(MAX_LEASE))).await;
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

/// Stores the session id if the server doesn't list its sessions. Before the start, because work
/// without a key would be out of reach.
fn store_key(
    on: Option<&Endpoint>,
    remote: &RemoteExecutor,
    id: &str,
) -> anyhow::Result<Option<SessionKeys>> {
    let (Some(server), false) = (on, remote.capabilities().session_list) else {
        return Ok(None);
    };
    let session = remote.session_id();
    let session = session.context("the server has no sessions, which detached work needs")?;
    let keys = SessionKeys::of_user()?;
    let key = SessionKey {
        process: id.to_owned(),
        session: session.to_owned(),
    };
    keys.add(server.url(), &key)?;
    Ok(Some(keys))
}

/// Returns whether the server rejects the lease.
fn is_lease_rejected(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(Error::Rejected { code, .. }) if *code == INVALID_PARAMS)
}

/// A new id: short enough to type, and practically unique.
fn random_id() -> String {
    // The lower half of a v4 UUID is random except for its first bits.
    let mut rest = Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 8);
    let letters = (0..ID_LENGTH).map(|_| {
        let letter = ID_ALPHABET[(rest % 36) as usize];
        rest /= 36;
        char::from(letter)
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_eight_characters_and_unique() {
        let names: HashSet<_> = (0..1000).map(|_| random_id()).collect();
        assert_eq!(names.len(), 1000);
        for name in &names {
            assert_eq!(name.len(), ID_LENGTH, "{name}");
            assert!(
                name.bytes().all(|byte| ID_ALPHABET.contains(&byte)),
                "{name}"
            );
        }
        let used: HashSet<_> = names.iter().flat_map(|name| name.chars()).collect();
        assert_eq!(used.len(), ID_ALPHABET.len(), "every letter is used");
    }
}
