//! Colours, for those who want them.

use std::io::IsTerminal;

use crate::colour;

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
            wanted: colour::wanted(stream),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_wants_colours_gets_them() {
        let none = Paint { wanted: false };
        assert_eq!(none.dye(Tone::Bad, "x"), "x");
        let some = Paint { wanted: true };
        assert_eq!(some.dye(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
