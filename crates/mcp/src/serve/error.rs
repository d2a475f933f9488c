//! Errors of tools, written for models.

use std::{path::PathBuf, time::Duration};

use outpost_client::{Error, FileError};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};

use super::files::edit::EditError;

/// Why a tool failed. The messages are for a model and say how to correct the call, where
/// that is possible. A command that fails is not an error of its tool.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    #[error("the arguments of {tool} don't match its schema: {reason}")]
    Arguments {
        tool: &'static str,
        reason: serde_json::Error,
    },
    #[error("give either `command`, a shell command line, or `argv`, a program with arguments")]
    NoCommand,
    #[error("give `command` or `argv`, not both")]
    TwoCommands,
    #[error("`argv` is empty; its first item is the program")]
    EmptyArgv,
    #[error("`{name}` is {value}, but must be from {min} to {max}")]
    OutOfRange {
        name: &'static str,
        value: u64,
        min: u64,
        max: u64,
    },
    #[error("`{name}` is not valid base64")]
    NotBase64 { name: &'static str },
    #[error(
        "there is no process {id:?}: it was never started in this session, or exited so long ago \
         that its output was dropped; list_processes lists the known ones"
    )]
    UnknownProcess { id: String },
    #[error("process {id} has exited{}; read its output with read_output", with_code(*.code))]
    Exited { id: String, code: Option<i32> },
    #[error("process {id} has no terminal; start it with \"tty\": true")]
    NoTerminal { id: String },
    #[error(
        "cannot start a process: {running} processes are running, which is the maximum; stop one \
         with stop_process (list_processes lists them)"
    )]
    TooManyProcesses { running: usize },
    #[error("{calls} calls are in progress, which is the maximum; retry later")]
    TooManyCalls { calls: usize },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("the session has ended")]
    SessionEnded,
    #[error(
        "process {id} did not read its input within {within:?}; part of it may still be queued"
    )]
    NotRead { id: String, within: Duration },
    #[error("process {id} did not exit within {within:?} after being told to terminate")]
    NotTerminated { id: String, within: Duration },
    #[error(
        "{path:?} is not a text file ({size} bytes); read it as base64 by giving `byte_offset`"
    )]
    Binary { path: PathBuf, size: u64 },
    #[error("cannot edit {path:?}: it is not UTF-8; edit it with run_command")]
    NotUtf8 { path: PathBuf },
    #[error("cannot edit {path:?}: it has {size} bytes, and the limit is {max}")]
    TooLarge { path: PathBuf, size: u64, max: u64 },
    #[error("{path:?} is a directory; list it with list_directory")]
    IsDirectory { path: PathBuf },
    #[error("{path:?} is not a directory; read it with read_file")]
    NotDirectory { path: PathBuf },
    #[error("{path:?} exists already, and `if_exists` is \"fail\"")]
    Exists { path: PathBuf },
    #[error("cannot edit {path:?}: {why}")]
    Edit { path: PathBuf, why: EditError },
    #[error("give `byte_offset` to read bytes or `start_line` to read lines, not both")]
    LinesOrBytes,
    #[error("give a `pattern` for lines, a `glob` for file names, or both")]
    NothingToSearch,
    #[error("`pattern` is not a valid regular expression")]
    Pattern(#[source] Box<regex::Error>),
    #[error("`glob` is not a valid glob pattern")]
    Glob(#[source] globset::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Executor(#[from] Error),
}

fn with_code(code: Option<i32>) -> String {
    code.map_or_else(String::new, |code| format!(" with code {code}"))
}

impl ToolError {
    /// Converts to a response. Arguments that violate the schema are a protocol error;
    /// everything else is a tool result, which the model sees.
    pub(super) fn into_response(self) -> Result<CallToolResult, ErrorData> {
        match self {
            ToolError::Arguments { .. } | ToolError::OutOfRange { .. } => {
                Err(ErrorData::invalid_params(self.to_string(), None))
            }
            error => {
                let message = with_causes(&error);
                Ok(CallToolResult::error(vec![ContentBlock::text(message)]))
            }
        }
    }
}

/// Formats an error with its chain of causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}
