//! The label of a session that was made by `outpost run --detach`.

use outpost_client::SessionEntry;

use crate::render::command_line;

/// How such a label begins, as a command line does on a screen. It is how these
/// sessions are told from those of other clients once their process is
/// forgotten.
const PROMPT: &str = "$ ";

/// The label for a command line.
pub(super) fn labelled(command: &str) -> String {
    format!("{PROMPT}{command}")
}

/// Whether a session is one of ours.
pub(super) fn is_detached_work(session: &SessionEntry) -> bool {
    let label = session.label.as_deref();
    label.is_some_and(|label| label.starts_with(PROMPT))
}

/// The command line of a process, as a person would type it.
pub(crate) fn command_of(session: &SessionEntry, argv: &[String]) -> String {
    let label = session.label.as_deref();
    match label.and_then(|label| label.strip_prefix(PROMPT)) {
        Some(command) => command_line::visible(command),
        None => command_line::quoted(argv),
    }
}

/// What another client calls its session.
pub(crate) fn label_of(session: &SessionEntry) -> Option<&str> {
    let label = session.label.as_deref();
    label.filter(|_| !is_detached_work(session))
}
