//! All there is on a server.

use anyhow::Context;
use outpost_client::{ProcessEntry, Remote, SessionEntry};

use super::label::is_detached_work;

/// Every session of a server. Sessions of detached work whose process is
/// forgotten are closed on the way, or they would pile up.
pub(crate) async fn list(remote: &Remote) -> anyhow::Result<Vec<SessionEntry>> {
    if !remote.capabilities().session_list {
        anyhow::bail!(
            "cannot list what runs there: a server gives its list only to its owner, over a unix socket; \
             use --on unix:///PATH"
        );
    }
    let sessions = remote.sessions().await;
    let sessions = sessions.context("cannot list what runs there")?;
    let (spent, kept): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_spent);
    for session in spent {
        // Another command may have been quicker.
        let _ = remote.end_session(&session.session_id).await;
    }
    Ok(kept)
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

/// Whether nothing will ever happen in a session: its process is forgotten, and
/// nobody is there who could start another.
fn is_spent(session: &SessionEntry) -> bool {
    is_detached_work(session)
        && !session.attached
        && session.expires_at_ms.is_none()
        && session.processes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detached::find::examples::{process, session};

    #[test]
    fn only_detached_work_that_is_over_is_spent() {
        let spent = session("s", "$ make", &[]);
        assert!(is_spent(&spent));
        let others = session("s", "nightly build", &[]);
        assert!(!is_spent(&others), "somebody else's");
        assert!(!is_spent(&session("s", "$ make", &[process("p")])));
        let attached = SessionEntry {
            attached: true,
            ..spent.clone()
        };
        assert!(!is_spent(&attached));
        let leased = SessionEntry {
            expires_at_ms: Some(1),
            ..spent
        };
        assert!(!is_spent(&leased), "it goes by itself");
    }
}
