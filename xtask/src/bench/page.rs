//! Writes the results into docs/benchmarks.md, between two markers.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use super::machine::Machine;
use super::measurement::Measurement;
use super::table;
use crate::checkout;

const PATH: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- written by `cargo xtask bench --write`: begin -->";
const END: &str = "<!-- end -->";

pub(super) fn write(lines: &[Measurement], machine: &Machine, rounds: usize) -> Result<()> {
    let path = checkout::root().join(PATH);
    let page = fs::read_to_string(&path).context(PATH)?;
    let results = results(lines, machine, rounds);
    let page = replace(&page, &results)
        .with_context(|| format!("{PATH} has lost the marks between which the results go"))?;
    fs::write(&path, page).context(PATH)?;
    println!("{PATH} is up to date");
    Ok(())
}

fn results(lines: &[Measurement], machine: &Machine, rounds: usize) -> String {
    let mut text = table::for_page(lines);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\nMedians of {rounds} rounds.\n\n| | |\n|---|---|");
    for (name, fact) in machine.facts() {
        let _ = writeln!(text, "| {name} | {fact} |");
    }
    text
}

/// Returns the page with new results, or None without the markers.
fn replace(page: &str, results: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{results}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
