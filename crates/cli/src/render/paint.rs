//! Colours, for those who want them.

use std::{ffi::OsString, io::IsTerminal};

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    wanted: bool,
}

/// What a colour is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A heading.
    Bold,
    /// All is well.
    Good,
    /// Something went wrong.
    Bad,
    /// Nothing to see.
    Quiet,
}

impl Paint {
    /// Only for people, on a terminal, who haven't asked for none.
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        Paint {
            wanted: stream.is_terminal() && allowed(std::env::var_os("NO_COLOR")),
        }
    }

    /// A text in a colour.
    pub(crate) fn dye(self, tone: Tone, text: &str) -> String {
        if !self.wanted {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Bold => 1,
            Tone::Quiet => 2,
            Tone::Bad => 31,
            Tone::Good => 32,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
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
        assert!(allowed(None) && allowed(Some(OsString::new())));
        assert!(!allowed(Some("1".into())));
        let none = Paint { wanted: false };
        assert_eq!(none.dye(Tone::Bad, "x"), "x");
        let some = Paint { wanted: true };
        assert_eq!(some.dye(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
