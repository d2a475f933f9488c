//! Formats measurements as a table, for a terminal or as Markdown in docs/benchmarks.md.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};
use std::{env, fs};

use anyhow::{Context, Result};

use super::machine::Facts;
use super::measurement::Measurement;
use crate::checkout;

const PATH: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- written by `cargo xtask bench --write`: begin -->";
const END: &str = "<!-- end -->";

/// The columns of text; the others are numbers.
const TEXT_COLUMNS: [usize; 3] = [0, 4, 5];

const OK: &str = "ok";
const MISSED: &str = "MISSED";

/// Returns true if stdout is a terminal that supports colours.
pub(super) fn wants_colour() -> bool {
    stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

/// Aligns columns: text to the left, numbers to the right.
pub(super) fn for_terminal(lines: &[Measurement], colour: bool) -> String {
    let rows = rows(lines);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            // All our characters are one column wide.
            let width = width(column).unwrap_or(0);
            let padded = if TEXT_COLUMNS.contains(&column) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            paint(cell, padded, colour)
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Writes the results into the page, between two markers.
pub(super) fn write_page(lines: &[Measurement], facts: &Facts, rounds: usize) -> Result<()> {
    let path = checkout::root().join(PATH);
    let page = fs::read_to_string(&path).context(PATH)?;
    let mut results = for_page(lines);
    let _ = writeln!(results, "\nMedians of {rounds} rounds.\n\n| | |\n|---|---|");
    for (name, fact) in facts {
        let _ = writeln!(results, "| {name} | {fact} |");
    }
    let page = replace(&page, &results)
        .with_context(|| format!("{PATH} has lost the marks between which the results go"))?;
    fs::write(&path, page).context(PATH)?;
    println!("{PATH} is up to date");
    Ok(())
}

/// Returns the page with new results, or None without the markers.
fn replace(page: &str, results: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{results}\n{END}{after}"))
}

/// Formats a Markdown table.
fn for_page(lines: &[Measurement]) -> String {
    let mut rows = rows(lines);
    let is_text = |column| TEXT_COLUMNS.contains(&column);
    let dashes = |column| if is_text(column) { "---" } else { "---:" };
    let rule: Vec<_> = (0..rows[0].len()).map(dashes).collect();
    let head = format!("| {} |\n|{}|\n", rows.remove(0).join(" | "), rule.join("|"));
    let rows = rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
    head + &rows.collect::<String>()
}

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

fn paint(cell: &str, padded: String, colour: bool) -> String {
    let code = match cell {
        OK => "32",
        MISSED => "1;31",
        _ => return padded,
    };
    if !colour {
        return padded;
    }
    padded.replacen(cell, &format!("\x1b[{code}m{cell}\x1b[0m"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measurement::{Bound, MIB, Unit};

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

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nMore.\n");
        let new = replace(&page, "new\n").unwrap();
        assert_eq!(
            new,
            format!("# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nMore.\n")
        );
        assert_eq!(replace(&new, "new\n").unwrap(), new);
    }

    #[test]
    fn a_page_without_marks_is_left_alone() {
        assert_eq!(replace("# Title\n", "new\n"), None);
        assert_eq!(replace(&format!("{END}{BEGIN}"), "new\n"), None);
    }
}
