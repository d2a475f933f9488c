//! Colours.

use std::io::IsTerminal;

use crate::colour;

/// Applies colours, if they are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Styler {
    wanted: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A heading.
    Bold,
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Unimportant.
    Quiet,
}

impl Styler {
    /// Enabled if the stream is a terminal and NO_COLOR isn't set.
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        Styler {
            wanted: colour::wanted(stream),
        }
    }

    /// Wraps a text in the escape codes of a style.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        if !self.wanted {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => 1,
            Style::Quiet => 2,
            Style::Bad => 31,
            Style::Good => 32,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_applied_only_if_enabled() {
        let none = Styler { wanted: false };
        assert_eq!(none.apply(Style::Bad, "x"), "x");
        let some = Styler { wanted: true };
        assert_eq!(some.apply(Style::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
