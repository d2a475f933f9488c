//! Decides whether to use colours.

use std::{ffi::OsString, io::IsTerminal};

/// Returns whether the stream is a terminal and NO_COLOR isn't set.
pub(crate) fn wanted(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && allowed(std::env::var_os("NO_COLOR"))
}

/// See <https://no-color.org>: any non-empty value disables colours.
fn allowed(no_color: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_disables_colours() {
        assert!(allowed(None));
        assert!(allowed(Some(OsString::new())));
        assert!(!allowed(Some("1".into())));
        assert!(!allowed(Some("0".into())));
    }
}
