//! All there is on a server.

use anyhow::Context;
use outpost_client::{ProcessEntry, Remote, SessionEntry};

use super::label::is_detached_work;

/// Every session of a server. Looking changes nothing: also a session whose
/// process is forgotten may hold what that has left running.
pub(crate) async fn list(remote: &Remote) -> anyhow::Result<Vec<SessionEntry>> {
    if !remote.capabilities().session_list {
        anyhow::bail!(
            "cannot list what runs there: a server gives its list only to its owner, over a unix socket; \
             use --on unix:///PATH"
        );
    }
    let sessions = remote.sessions().await;
    sessions.context("cannot list what runs there")
}

/// Every process of detached work, oldest first, and if asked for those of
/// everybody else.
pub(crate) fn processes(
    sessions: &[SessionEntry],
    all: bool,
) -> Vec<(&SessionEntry, &ProcessEntry)> {
    let meant = sessions.iter().filter(|s| all || is_detached_work(s));
    let mut processes: Vec<_> = meant
        .flat_map(|session| {
            session
                .processes
                .iter()
                .map(move |process| (session, process))
        })
        .collect();
    processes.sort_by_key(|(_, process)| process.started_at_ms);
    processes
}
