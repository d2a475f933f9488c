//! Formats measurements as a table, for a terminal or as Markdown.

use std::env;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};

use super::measurement::Measurement;

const OK: &str = "ok";
const MISSED: &str = "MISSED";

/// Returns true if stdout is a terminal that wants colours.
pub(super) fn wants_colour() -> bool {
    stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

/// Aligns columns: the first to the left, numbers to the right.
pub(super) fn for_terminal(lines: &[Measurement], colour: bool) -> String {
    let rows = rows(lines);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            rows.iter()
                .map(|row| width(&row[column]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - self::width(cell));
            let cell = paint(cell, colour);
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _ = match column {
                0 | BOUND | VERDICT => write!(line, "{gap}{cell}{padding}"),
                _ => write!(line, "{gap}{padding}{cell}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Formats a Markdown table.
pub(super) fn for_page(lines: &[Measurement]) -> String {
    let mut text = String::new();
    for (number, row) in rows(lines).iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if number == 0 {
            let dashes: Vec<&str> = (0..row.len())
                .map(|column| match column {
                    0 | BOUND | VERDICT => "---",
                    _ => "---:",
                })
                .collect();
            let _ = writeln!(text, "|{}|", dashes.join("|"));
        }
    }
    text
}

const BOUND: usize = 4;
const VERDICT: usize = 5;

/// The cells, heading first. The peer has columns only if it was measured.
fn rows(lines: &[Measurement]) -> Vec<Vec<String>> {
    let with_peer = lines.iter().any(|line| line.peer.is_some());
    let mut heading = vec!["", "bare", "outpost", "ratio", "bound", ""];
    if with_peer {
        heading.extend(["peer", "ratio"]);
    }
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect()];
    for line in lines {
        let value = |value: Option<f64>| value.map_or(String::new(), |value| line.unit.show(value));
        let verdict = match (line.bounds.is_empty(), line.missed()) {
            (true, _) => "",
            (false, true) => MISSED,
            (false, false) => OK,
        };
        let mut row = vec![
            line.name.clone(),
            value(line.bare),
            value(Some(line.outpost)),
            ratio(line.ratio()),
            line.show_bounds(),
            verdict.to_owned(),
        ];
        if with_peer {
            row.extend([value(line.peer), ratio(line.peer_ratio())]);
        }
        rows.push(row);
    }
    rows
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("{ratio:.2} ×"))
}

/// The width of a cell; all our characters are one column wide.
fn width(cell: &str) -> usize {
    cell.chars().count()
}

fn paint(cell: &str, colour: bool) -> String {
    let code = match cell {
        OK => "32",
        MISSED => "1;31",
        _ => return cell.to_owned(),
    };
    if colour {
        format!("\x1b[{code}m{cell}\x1b[0m")
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::bound::Bound;
    use crate::bench::measurement::{MIB, Unit};

    fn lines() -> Vec<Measurement> {
        let one = Measurement {
            name: "one-shot".to_owned(),
            unit: Unit::Millis,
            bare: Some(0.8),
            outpost: 1.2,
            peer: None,
            bounds: vec![Bound::RatioAtMost(1.3)],
        };
        let size = Measurement {
            name: "size".to_owned(),
            unit: Unit::Bytes,
            bare: None,
            outpost: 5.0 * MIB,
            peer: None,
            bounds: vec![Bound::AtMost(20.0 * MIB)],
        };
        vec![one, size]
    }

    #[test]
    fn columns_are_aligned_and_end_without_spaces() {
        let expected = "\
          \x20           bare  outpost   ratio  bound
one-shot  800 µs  1.20 ms  1.50 ×  ≤ 1.3 ×   MISSED
size                5 MiB          ≤ 20 MiB  ok
";
        assert_eq!(for_terminal(&lines(), false), expected);
    }

    #[test]
    fn only_the_verdict_is_coloured() {
        let plain = for_terminal(&lines(), false);
        let coloured = for_terminal(&lines(), true);
        assert!(!plain.contains('\x1b'));
        assert!(coloured.contains("\x1b[1;31mMISSED\x1b[0m"));
        assert!(coloured.contains("\x1b[32mok\x1b[0m"));
        assert_eq!(coloured.matches('\x1b').count(), 4);
    }

    #[test]
    fn a_peer_gets_columns_when_it_was_measured() {
        let mut lines = lines();
        lines[0].peer = Some(1.6);
        let page = for_page(&lines);
        let expected = "\
|  | bare | outpost | ratio | bound |  | peer | ratio |
|---|---:|---:|---:|---|---|---:|---:|
| one-shot | 800 µs | 1.20 ms | 1.50 × | ≤ 1.3 × | MISSED | 1.60 ms | 2.00 × |
| size |  | 5 MiB |  | ≤ 20 MiB | ok |  |  |
";
        assert_eq!(page, expected);
    }

    #[test]
    fn a_line_without_a_bound_has_no_verdict() {
        let mut lines = lines();
        lines[0].bounds.clear();
        assert!(!for_page(&lines).contains(MISSED));
    }
}
