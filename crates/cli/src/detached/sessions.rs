//! Sessions and processes of a server, and the labels of sessions created by `outpost run
//! --detach`.

use anyhow::Context;
use outpost_client::{ProcessEntry, RemoteExecutor, SessionEntry};

use crate::render::command_line;

/// Prefix of such a label. It distinguishes these sessions from those of other clients, even after
/// the process has expired.
const PROMPT: &str = "$ ";

/// The server's limit.
const MAX_BYTES: usize = 1024;

/// The label for a command line, truncated if necessary.
pub(super) fn label_for(command: &str) -> String {
    let label = format!("{PROMPT}{command}");
    if label.len() <= MAX_BYTES {
        return label;
    }
    let cut = label.floor_char_boundary(MAX_BYTES - "…".len());
    format!("{}…", &label[..cut])
}

/// Returns whether the session was created by `outpost run --detach`.
pub(super) fn is_detached_work(session: &SessionEntry) -> bool {
    let label = session.label.as_deref();
    label.is_some_and(|label| label.starts_with(PROMPT))
}

/// The command line of a process.
pub(crate) fn command_of(session: &SessionEntry, argv: &[String]) -> String {
    let label = session.label.as_deref();
    match label.and_then(|label| label.strip_prefix(PROMPT)) {
        Some(command) => command.to_owned(),
        None => command_line::quoted(argv),
    }
}

/// The label of another client's session.
pub(crate) fn label_of(session: &SessionEntry) -> Option<&str> {
    let label = session.label.as_deref();
    label.filter(|_| !is_detached_work(session))
}

/// Lists every session. A session without a process may still have leftover processes.
pub(crate) async fn list(remote: &RemoteExecutor) -> anyhow::Result<Vec<SessionEntry>> {
    if !remote.capabilities().session_list {
        anyhow::bail!(
            "cannot list the server's processes: it lists them over a unix socket, and to clients with a \
             token or a certificate; connect in one of these ways"
        );
    }
    let sessions = remote.sessions().await;
    sessions.context("cannot list the server's processes")
}

/// The processes of detached work, oldest first; with `all`, those of other clients and principals too.
pub(crate) fn processes(
    sessions: &[SessionEntry],
    all: bool,
) -> Vec<(&SessionEntry, &ProcessEntry)> {
    let is_own = |session: &SessionEntry| session.principal.is_none();
    let matching = sessions.iter();
    let matching = matching.filter(|s| all || is_own(s) && is_detached_work(s));
    let mut processes: Vec<_> = matching
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_the_servers_limit() {
        assert_eq!(label_for("make"), "$ make");
        for command in ["x".repeat(5000), "ä".repeat(5000), "€".repeat(5000)] {
            let label = label_for(&command);
            assert!(label.len() <= MAX_BYTES, "{} bytes", label.len());
            assert!(label.len() > MAX_BYTES - 8, "{} bytes", label.len());
            assert!(label.starts_with(PROMPT) && label.ends_with('…'), "{label}");
        }
    }
}
