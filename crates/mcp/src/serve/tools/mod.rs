//! The tools, one file each.

mod concurrent;
mod edit_file;
mod encoding;
mod list;
mod list_directory;
mod list_processes;
mod read_file;
mod read_output;
mod resize_terminal;
mod run_command;
mod search;
mod search_files;
mod search_result;
mod send_signal;
mod snapshot;
mod start_process;
mod stop_process;
mod write_file;
mod write_input;

use std::time::Duration;

pub(super) use run_command::CommandLine;
use snapshot::ProcessSnapshot;

use super::{ToolEntry, ToolError, text::millis};

/// All tools, in the order of `tools/list`.
pub(super) const TABLE: &[ToolEntry] = &[
    ToolEntry::of::<run_command::RunCommand>(),
    ToolEntry::of::<start_process::StartProcess>(),
    ToolEntry::of::<read_output::ReadOutput>(),
    ToolEntry::of::<write_input::WriteInput>(),
    ToolEntry::of::<send_signal::SendSignal>(),
    ToolEntry::of::<resize_terminal::ResizeTerminal>(),
    ToolEntry::of::<stop_process::StopProcess>(),
    ToolEntry::of::<list_processes::ListProcesses>(),
    ToolEntry::of::<read_file::ReadFile>(),
    ToolEntry::of::<write_file::WriteFile>(),
    ToolEntry::of::<edit_file::EditFile>(),
    ToolEntry::of::<list_directory::ListDirectory>(),
    ToolEntry::of::<search_files::SearchFiles>(),
];

/// Returns an argument or its default, if it is within the range.
fn in_range(
    name: &'static str,
    value: Option<u64>,
    default: u64,
    (min, max): (u64, u64),
) -> Result<u64, ToolError> {
    let value = value.unwrap_or(default);
    if value < min || value > max {
        return Err(ToolError::OutOfRange {
            name,
            value,
            min,
            max,
        });
    }
    Ok(value)
}

/// Returns a size argument or its default, if it is within the range.
fn size_in_range(
    name: &'static str,
    value: Option<u64>,
    default: usize,
    max: usize,
) -> Result<usize, ToolError> {
    /// Large enough for any character.
    const MIN: u64 = 100;
    let value = in_range(name, value, default as u64, (MIN, max as u64))?;
    Ok(usize::try_from(value).unwrap_or(max))
}

/// Returns an argument in milliseconds or its default, if it is within the range.
fn duration_in_range(
    name: &'static str,
    value: Option<u64>,
    default: Duration,
    (min, max): (u64, Duration),
) -> Result<Duration, ToolError> {
    let value = in_range(name, value, millis(default), (min, millis(max)))?;
    Ok(Duration::from_millis(value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::serve::ToolLimits;

    fn property(tool: &str, name: &str) -> Value {
        let entry = TABLE.iter().find(|entry| entry.name == tool).unwrap();
        (entry.describe)().input_schema["properties"][name].clone()
    }

    #[test]
    fn schemas_match_the_limits() {
        let limits = ToolLimits::default();
        let millis = |time: Duration| json!(time.as_millis() as u64);
        for (tool, name, max, default) in [
            (
                "run_command",
                "timeout_ms",
                millis(limits.run_max),
                millis(limits.run),
            ),
            (
                "run_command",
                "max_output_bytes",
                json!(limits.output_max),
                json!(limits.output),
            ),
            (
                "start_process",
                "max_output_bytes",
                json!(limits.output_max),
                json!(limits.output),
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
                json!(limits.output_max),
                json!(limits.output),
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
                json!(limits.file_max),
                json!(limits.file),
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
