//! The label of a session that was made by `outpost run --detach`.

use outpost_client::SessionEntry;

use crate::render::command_line;

/// How such a label begins, as a command line does on a screen. It is how these
/// sessions are told from those of other clients once their process is
/// forgotten.
const PROMPT: &str = "$ ";

/// The longest label that a server takes.
const MAX_BYTES: usize = 1024;

/// The label for a command line; of a very long one, how it begins.
pub(super) fn labelled(command: &str) -> String {
    let label = format!("{PROMPT}{command}");
    if label.len() <= MAX_BYTES {
        return label;
    }
    let cut = label.floor_char_boundary(MAX_BYTES - "…".len());
    format!("{}…", &label[..cut])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_never_longer_than_a_server_takes() {
        assert_eq!(labelled("make"), "$ make");
        for command in ["x".repeat(5000), "ä".repeat(5000), "€".repeat(5000)] {
            let label = labelled(&command);
            assert!(label.len() <= MAX_BYTES, "{} bytes", label.len());
            assert!(label.len() > MAX_BYTES - 8, "{} bytes", label.len());
            assert!(label.starts_with(PROMPT) && label.ends_with('…'), "{label}");
        }
    }
}
