//! The terminal on stdout: colours and aligned columns.

use std::{
    ffi::OsString,
    io::{IsTerminal, stdout},
};

use super::visible::visible;

/// Separates two columns.
const GAP: &str = "  ";

/// The width of the terminal, and whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// None for a file or a pipe.
    width: Option<usize>,
    coloured: bool,
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

/// A text with a style. Text of others is made visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        let text = visible(text.as_ref()).into_owned();
        Cell { text, style: None }
    }

    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Cell {
            style: Some(style),
            ..Cell::plain(text)
        }
    }
}

impl Screen {
    pub(crate) fn stdout() -> Self {
        let size = rustix::termios::tcgetwinsize(stdout()).ok();
        let width = size.map(|size| usize::from(size.ws_col));
        Screen {
            width: width.filter(|width| *width > 0),
            coloured: is_coloured(&stdout()),
        }
    }

    /// Makes a text visible, and wraps it in the escape codes of a style.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        let text = visible(text);
        if !self.coloured {
            return text.into_owned();
        }
        let code = match style {
            Style::Bold => 1,
            Style::Quiet => 2,
            Style::Bad => 31,
            Style::Good => 32,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Formats a table. Each column is as wide as its widest cell; lines are cut to fit.
    pub(crate) fn table<const N: usize>(self, head: [&str; N], rows: &[[Cell; N]]) -> Vec<String> {
        let head = head.map(|text| Cell::styled(text, Style::Bold));
        let all: Vec<_> = std::iter::once(&head).chain(rows).collect();
        let widest = |column: usize| {
            let lengths = all.iter().map(|row| row[column].text.chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(widest);
        all.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn line<const N: usize>(self, row: &[Cell; N], widths: &[usize; N]) -> String {
        let mut line = String::new();
        let mut space = self.width.unwrap_or(usize::MAX);
        for (column, (cell, column_width)) in row.iter().zip(widths).enumerate() {
            let text = cut(&cell.text, space);
            match cell.style {
                Some(style) => line.push_str(&self.apply(style, &text)),
                None => line.push_str(&text),
            }
            if column + 1 < N {
                let pad = column_width.saturating_sub(text.chars().count());
                line.push_str(&format!("{:pad$}{GAP}", ""));
            }
            space = space.saturating_sub(column_width + GAP.len());
        }
        line
    }
}

/// Returns whether a stream is a terminal and NO_COLOR isn't set.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && allows_colours(std::env::var_os("NO_COLOR"))
}

/// See <https://no-color.org>: any non-empty value disables colours.
fn allows_colours(no_color: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty())
}

/// Cuts a text to fit, with an ellipsis.
fn cut(text: &str, space: usize) -> String {
    if text.chars().count() <= space {
        return text.to_owned();
    }
    let short = text.chars().take(space.saturating_sub(1));
    short.chain((space > 0).then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Screen {
        /// Output for a file: without colours and of any width.
        pub(crate) const FILE: Screen = Screen {
            width: None,
            coloured: false,
        };
        pub(crate) const COLOURED: Screen = Screen {
            coloured: true,
            ..Screen::FILE
        };
    }

    fn shown(rows: &[[&str; 3]], width: Option<usize>) -> Vec<String> {
        let rows: Vec<_> = rows.iter().map(|row| row.map(Cell::plain)).collect();
        let screen = Screen {
            width,
            ..Screen::FILE
        };
        screen.table(["ID", "STATE", "COMMAND"], &rows)
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "running", "sleep 10"], ["bcd", "exited 0", "é"]];
        assert_eq!(
            shown(&rows, None),
            [
                "ID   STATE     COMMAND",
                "a    running   sleep 10",
                "bcd  exited 0  é",
            ]
        );
    }

    #[test]
    fn long_lines_are_cut() {
        let rows = [["a", "running", "sleep 10"]];
        let lines = shown(&rows, Some(17));
        assert_eq!(lines, ["ID  STATE    COM…", "a   running  sle…"]);
        let lines = shown(&rows, Some(8));
        assert_eq!(lines[1].trim_end(), "a   run…");
    }

    #[test]
    fn colours_are_applied_only_if_enabled() {
        assert_eq!(Screen::FILE.apply(Style::Bad, "x"), "x");
        let coloured = Screen::COLOURED.apply(Style::Bad, "x");
        assert_eq!(coloured, "\u{1b}[31mx\u{1b}[0m");
    }

    #[test]
    fn text_of_others_is_made_visible() {
        let rows = [["\u{1b}c", "a\nb", "\u{202e}x"]];
        assert_eq!(shown(&rows, None)[1], r"\u{1b}c  a\nb   \u{202e}x");
        for screen in [Screen::FILE, Screen::COLOURED] {
            assert!(screen.apply(Style::Bad, "\u{9b}m").contains(r"\u{9b}m"));
        }
    }

    #[test]
    fn no_color_disables_colours() {
        assert!(allows_colours(None));
        assert!(allows_colours(Some(OsString::new())));
        assert!(!allows_colours(Some("1".into())));
        assert!(!allows_colours(Some("0".into())));
    }
}
