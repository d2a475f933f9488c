//! Aligned columns.

use super::style::{Style, Styler};

/// Separates two columns.
const GAP: &str = "  ";

/// A text with a style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Cell {
            text: text.into(),
            style: None,
        }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell {
            text: text.into(),
            style: Some(style),
        }
    }
}

/// Formats a table. Each column is as wide as its widest cell; lines are cut at `width`.
pub(crate) fn lines<const N: usize>(
    head: [&str; N],
    rows: &[[Cell; N]],
    width: Option<usize>,
    styler: Styler,
) -> Vec<String> {
    let head = head.map(|text| Cell::styled(text, Style::Bold));
    let all: Vec<_> = std::iter::once(&head).chain(rows).collect();
    let widest = |column: usize| {
        let lengths = all.iter().map(|row| row[column].text.chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(widest);
    all.iter()
        .map(|row| line(row, &widths, width.unwrap_or(usize::MAX), styler))
        .collect()
}

fn line<const N: usize>(
    row: &[Cell; N],
    widths: &[usize; N],
    width: usize,
    styler: Styler,
) -> String {
    let mut line = String::new();
    let mut room = width;
    for (column, (cell, column_width)) in row.iter().zip(widths).enumerate() {
        let last = column + 1 == N;
        let text = cut(&cell.text, room);
        let used = text.chars().count();
        match cell.style {
            Some(style) => line.push_str(&styler.apply(style, &text)),
            None => line.push_str(&text),
        }
        if !last {
            line.extend(std::iter::repeat_n(' ', column_width.saturating_sub(used)));
            line.push_str(GAP);
        }
        room = room.saturating_sub(column_width + GAP.len());
    }
    line
}

/// Cuts a text to fit, with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(room.saturating_sub(1)).collect();
    if room > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[[&str; 3]], width: Option<usize>) -> Vec<String> {
        let rows: Vec<_> = rows.iter().map(|row| row.map(Cell::plain)).collect();
        let styler = Styler::on(&std::fs::File::open("/dev/null").unwrap());
        lines(["ID", "STATE", "COMMAND"], &rows, width, styler)
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
}
