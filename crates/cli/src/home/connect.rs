//! The user's server is found, or started.

use anyhow::Context;
use outpost_client::{Error, Remote, RemoteOptions};

use super::{folder::Folder, launch::launch};
use crate::render::out::note;

/// How often a server may be gone again by the time it is asked for something:
/// one that has nothing to do ends whenever it likes.
const TRIES: usize = 3;

/// What to do where no server is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartIfMissing {
    /// Start one.
    Yes,
    /// Do without.
    No,
}

/// A connection to the user's server. It is ready when this returns.
pub(crate) async fn connect(
    start: StartIfMissing,
    options: RemoteOptions,
) -> anyhow::Result<Remote> {
    if let Some(remote) = find(options.clone()).await? {
        return Ok(remote);
    }
    if start == StartIfMissing::No {
        anyhow::bail!("no server of this user is running; `outpost run --detach` starts one");
    }
    let folder = Folder::of_user();
    folder.make()?;
    let _lock = folder.lock().await?;
    let mut launched = Ok(());
    for _ in 0..TRIES {
        // Somebody else may have started it while we waited.
        if let Some(remote) = knock(&folder, options.clone()).await? {
            return Ok(remote);
        }
        launched = launch(&folder).await;
        if launched.is_err() {
            break;
        }
    }
    // Where it could not be started, perhaps because there is one after all.
    match knock(&folder, options).await? {
        Some(remote) => Ok(remote),
        None => {
            launched?;
            anyhow::bail!("the server of this user ends as soon as it has been started")
        }
    }
}

/// A connection to the user's server, if one is running.
pub(crate) async fn find(options: RemoteOptions) -> anyhow::Result<Option<Remote>> {
    let folder = Folder::of_user();
    match folder.is_there()? {
        true => knock(&folder, options).await,
        false => Ok(None),
    }
}

async fn knock(folder: &Folder, options: RemoteOptions) -> anyhow::Result<Option<Remote>> {
    match Remote::connect(&folder.url()?, options).await {
        Ok(remote) => {
            let theirs = remote.server_info().map(|info| info.version.as_str());
            if let Some(words) = difference(env!("CARGO_PKG_VERSION"), theirs) {
                note(&words);
            }
            Ok(Some(remote))
        }
        Err(error) if nobody_is_there(&error) => Ok(None),
        Err(error) => Err(error).context("cannot talk to the server of this user"),
    }
}

/// Whether a connection failed for want of a server: none, one that has left its
/// socket behind, or one that was just leaving.
fn nobody_is_there(error: &Error) -> bool {
    match error {
        Error::Disconnected { .. } => true,
        Error::Unreachable { source, .. } => source.is_nobody_there(),
        _ => false,
    }
}

/// What to say of a server of another version: it may not know everything that
/// this program asks of it.
fn difference(ours: &str, theirs: Option<&str>) -> Option<String> {
    let theirs = theirs.filter(|theirs| *theirs != ours)?;
    Some(format!(
        "the server of this user is version {theirs} and this is {ours}; \
         `outpost stop` ends it, with everything it runs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_worth_a_word() {
        assert_eq!(difference("1.2.3", Some("1.2.3")), None);
        assert_eq!(difference("1.2.3", None), None);
        let words = difference("1.2.3", Some("1.2.2")).unwrap();
        assert!(words.contains("version 1.2.2 and this is 1.2.3"), "{words}");
    }
}
