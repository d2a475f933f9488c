//! The tools.
//!
//! - `run_command`, `start_process`: start commands; `process_io`: their output and input;
//!   `process_control`: signals, size, end and list
//! - `read_file`, `write_file`, `edit_file`, `list_directory`, `search_files`
//! - `search`: the search itself; `special_entries`: links and special files, which a walk leaves out;
//!   `encoding`: bytes in arguments and results

mod edit_file;
mod encoding;
mod list_directory;
mod process_control;
mod process_io;
mod read_file;
mod run_command;
mod search;
mod search_files;
mod special_entries;
mod start_process;
mod write_file;

use std::{ops::RangeInclusive, time::Duration};

use edit_file::EditFile;
use list_directory::ListDirectory;
use process_control::{ListProcesses, ResizeTerminal, SendSignal, StopProcess};
use process_io::{ReadOutput, WriteInput};
use read_file::ReadFile;
use run_command::RunCommand;
use search_files::SearchFiles;
use start_process::StartProcess;
use write_file::WriteFile;

use super::{
    ToolEntry, ToolError, ToolLimits,
    text::millis,
    tool::Effect::{Destructive, DestructiveIdempotent, Idempotent, OpenWorld, ReadOnly},
};

/// The least size of output or content in a response, large enough for any character.
const MIN_SIZE: usize = 100;

/// All tools with their titles and effects, in the order of `tools/list`.
pub(super) const TABLE: &[ToolEntry] = &[
    ToolEntry::of::<RunCommand>("run_command", "Run a command", OpenWorld),
    ToolEntry::of::<StartProcess>("start_process", "Start a process", OpenWorld),
    ToolEntry::of::<ReadOutput>("read_output", "Read a process's output", ReadOnly),
    ToolEntry::of::<WriteInput>("write_input", "Write to a process", OpenWorld),
    ToolEntry::of::<SendSignal>("send_signal", "Signal a process", Destructive),
    ToolEntry::of::<ResizeTerminal>("resize_terminal", "Resize a process's terminal", Idempotent),
    ToolEntry::of::<StopProcess>("stop_process", "Stop a process", DestructiveIdempotent),
    ToolEntry::of::<ListProcesses>("list_processes", "List processes", ReadOnly),
    ToolEntry::of::<ReadFile>("read_file", "Read a file", ReadOnly),
    ToolEntry::of::<WriteFile>("write_file", "Write a file", DestructiveIdempotent),
    ToolEntry::of::<EditFile>("edit_file", "Edit a file", Destructive),
    ToolEntry::of::<ListDirectory>("list_directory", "List a directory", ReadOnly),
    ToolEntry::of::<SearchFiles>("search_files", "Search files", ReadOnly),
];

/// Returns an argument or its default, if it is within the range.
fn in_range<T>(
    name: &'static str,
    value: Option<u64>,
    default: T,
    range: RangeInclusive<T>,
) -> Result<T, ToolError>
where
    T: Copy + PartialOrd + TryFrom<u64> + TryInto<u64>,
{
    let Some(value) = value else {
        return Ok(default);
    };
    match T::try_from(value) {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => {
            let number = |bound: T| bound.try_into().unwrap_or(u64::MAX);
            Err(ToolError::OutOfRange {
                name,
                value,
                min: number(*range.start()),
                max: number(*range.end()),
            })
        }
    }
}

/// Returns the argument `max_output_bytes` or its default, if it is within the range.
fn max_output(value: Option<u64>, limits: &ToolLimits) -> Result<usize, ToolError> {
    let range = MIN_SIZE..=limits.output_bytes_max;
    in_range("max_output_bytes", value, limits.output_bytes, range)
}

/// Returns an argument in milliseconds or its default, if it is within the range.
fn duration_in_range(
    name: &'static str,
    value: Option<u64>,
    default: Duration,
    (min, max): (u64, Duration),
) -> Result<Duration, ToolError> {
    let value = in_range(name, value, millis(default), min..=millis(max))?;
    Ok(Duration::from_millis(value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn property(tool: &str, name: &str) -> Value {
        let entry = TABLE.iter().find(|entry| entry.name == tool).unwrap();
        (entry.describe)(entry).input_schema["properties"][name].clone()
    }

    #[test]
    fn schemas_match_the_limits() {
        let limits = ToolLimits::default();
        let millis = |time: Duration| json!(time.as_millis() as u64);
        for (tool, name, max, default) in [
            (
                "run_command",
                "timeout_ms",
                millis(limits.run_timeout_max),
                millis(limits.run_timeout),
            ),
            (
                "run_command",
                "max_output_bytes",
                json!(limits.output_bytes_max),
                json!(limits.output_bytes),
            ),
            (
                "start_process",
                "max_output_bytes",
                json!(limits.output_bytes_max),
                json!(limits.output_bytes),
            ),
            (
                "start_process",
                "wait_ms",
                millis(limits.wait_max),
                millis(limits.first_output),
            ),
            (
                "read_output",
                "max_output_bytes",
                json!(limits.output_bytes_max),
                json!(limits.output_bytes),
            ),
            ("read_output", "wait_ms", millis(limits.wait_max), json!(0)),
            (
                "stop_process",
                "grace_ms",
                millis(limits.grace_max),
                millis(limits.grace),
            ),
            (
                "read_file",
                "max_bytes",
                json!(limits.file_bytes_max),
                json!(limits.file_bytes),
            ),
            ("read_file", "max_lines", Value::Null, json!(limits.lines)),
            (
                "list_directory",
                "max_entries",
                json!(limits.entries_max),
                json!(limits.entries),
            ),
            (
                "search_files",
                "max_matches",
                json!(limits.matches_max),
                json!(limits.matches),
            ),
        ] {
            let property = property(tool, name);
            assert_eq!(property["maximum"], max, "{tool}: {name}");
            assert_eq!(property["default"], default, "{tool}: {name}");
        }
    }
}
