//! Whether to use colours.

use std::{ffi::OsString, io::IsTerminal};

/// Only for people, on a terminal, who haven't asked for none.
pub(crate) fn wanted(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && allowed(std::env::var_os("NO_COLOR"))
}

/// The variable counts when it is set to anything at all.
fn allowed(no_color: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_can_be_declined() {
        assert!(allowed(None));
        assert!(allowed(Some(OsString::new())));
        assert!(!allowed(Some("1".into())));
        assert!(!allowed(Some("0".into())));
    }
}
