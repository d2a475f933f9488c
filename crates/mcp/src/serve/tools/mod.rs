//! The tools, one file each.

mod command_line;
mod edit_file;
mod encoding;
mod glimpse;
mod hunt;
mod list_directory;
mod list_processes;
mod read_file;
mod read_output;
mod replacement;
mod resize_terminal;
mod run_command;
mod search_files;
mod send_signal;
mod shortfall;
mod start_process;
mod stop_process;
mod strays;
mod survey;
mod together;
mod write_file;
mod write_input;

pub(super) use command_line::CommandLine;
use glimpse::Glimpse;

use super::{Mishap, Row};

/// All of them, in the order in which they are told.
pub(super) const TABLE: &[Row] = &[
    Row::of::<run_command::RunCommand>(),
    Row::of::<start_process::StartProcess>(),
    Row::of::<read_output::ReadOutput>(),
    Row::of::<write_input::WriteInput>(),
    Row::of::<send_signal::SendSignal>(),
    Row::of::<resize_terminal::ResizeTerminal>(),
    Row::of::<stop_process::StopProcess>(),
    Row::of::<list_processes::ListProcesses>(),
    Row::of::<read_file::ReadFile>(),
    Row::of::<write_file::WriteFile>(),
    Row::of::<edit_file::EditFile>(),
    Row::of::<list_directory::ListDirectory>(),
    Row::of::<search_files::SearchFiles>(),
];

/// A number that was given, or what it is otherwise, if it is within its range.
fn ranged(
    name: &'static str,
    value: Option<u64>,
    otherwise: u64,
    (least, most): (u64, u64),
) -> Result<u64, Mishap> {
    let value = value.unwrap_or(otherwise);
    if value < least || value > most {
        return Err(Mishap::OutOfRange {
            name,
            value,
            least,
            most,
        });
    }
    Ok(value)
}

/// The same, for sizes.
fn sized(
    name: &'static str,
    value: Option<u64>,
    otherwise: usize,
    most: usize,
) -> Result<usize, Mishap> {
    /// Less than that isn't worth an answer, and may be less than a character.
    const LEAST: u64 = 100;
    let value = ranged(name, value, otherwise as u64, (LEAST, most as u64))?;
    Ok(usize::try_from(value).unwrap_or(most))
}

/// The same, for times.
fn timed(
    name: &'static str,
    millis: Option<u64>,
    otherwise: std::time::Duration,
    (least, most): (u64, std::time::Duration),
) -> Result<std::time::Duration, Mishap> {
    let of = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let millis = ranged(name, millis, of(otherwise), (least, of(most)))?;
    Ok(std::time::Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::serve::Bounds;

    fn described(tool: &str, name: &str) -> Value {
        let row = TABLE.iter().find(|row| row.name == tool).expect("a tool");
        (row.describe)().input_schema["properties"][name].clone()
    }

    /// Schemas say numbers that are decided elsewhere.
    #[test]
    fn schemas_say_what_is_so() {
        let bounds = Bounds::default();
        let millis = |time: std::time::Duration| json!(time.as_millis() as u64);
        for (tool, name, most, otherwise) in [
            (
                "run_command",
                "timeout_ms",
                millis(bounds.run_max),
                millis(bounds.run),
            ),
            (
                "run_command",
                "max_output_bytes",
                json!(bounds.output_max),
                json!(bounds.output),
            ),
            (
                "start_process",
                "max_output_bytes",
                json!(bounds.output_max),
                json!(bounds.output),
            ),
            (
                "start_process",
                "wait_ms",
                millis(bounds.wait_max),
                millis(bounds.first_words),
            ),
            (
                "read_output",
                "max_output_bytes",
                json!(bounds.output_max),
                json!(bounds.output),
            ),
            ("read_output", "wait_ms", millis(bounds.wait_max), json!(0)),
            (
                "stop_process",
                "grace_ms",
                millis(bounds.grace_max),
                millis(bounds.grace),
            ),
            (
                "read_file",
                "max_bytes",
                json!(bounds.file_max),
                json!(bounds.file),
            ),
            ("read_file", "max_lines", Value::Null, json!(bounds.lines)),
            (
                "list_directory",
                "max_entries",
                json!(bounds.entries_max),
                json!(bounds.entries),
            ),
            (
                "search_files",
                "max_matches",
                json!(bounds.matches_max),
                json!(bounds.matches),
            ),
        ] {
            let property = described(tool, name);
            assert_eq!(property["maximum"], most, "{tool}: {name}");
            assert_eq!(property["default"], otherwise, "{tool}: {name}");
        }
    }
}
