//! What can go wrong with a call that isn't the command's own failure.

use std::{path::PathBuf, time::Duration};

use outpost_client::{Error, FileError};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};

use super::files::edit::Unedited;

/// Why a tool has not done what it was asked for. The words are for a model: they
/// say what to do about it, where something can be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mishap {
    /// They don't fit the schema, which the host could have seen.
    #[error("the arguments of {tool} don't fit its schema: {reason}")]
    Arguments {
        tool: &'static str,
        reason: serde_json::Error,
    },
    #[error("give either `command`, a line for the shell, or `argv`, a program with its arguments")]
    NoCommand,
    #[error("give `command` or `argv`, not both")]
    TwoCommands,
    #[error("`argv` is empty; its first item is the program")]
    EmptyArgv,
    #[error("`{name}` is {value}, and can be from {least} to {most}")]
    OutOfRange {
        name: &'static str,
        value: u64,
        least: u64,
        most: u64,
    },
    #[error("`{name}` is no valid base64")]
    NotBase64 { name: &'static str },
    #[error(
        "there is no process {id:?}: it was never started here, or ended so long ago that it is \
         forgotten; list_processes shows those there are"
    )]
    UnknownProcess { id: String },
    #[error("process {id} has ended{}; read_output gives what it wrote", with_code(*.code))]
    HasEnded { id: String, code: Option<i32> },
    #[error("process {id} has no terminal; start it with \"tty\": true to give it one")]
    NoTerminal { id: String },
    #[error(
        "{running} processes are running, which is as many as there can be; end one with \
         stop_process first (list_processes shows them)"
    )]
    TooManyProcesses { running: usize },
    #[error("{calls} calls are under way, which is as many as there can be; try again")]
    TooManyCalls { calls: usize },
    #[error("it was called off")]
    Cancelled,
    #[error("the conversation has ended")]
    Leaving,
    #[error("process {id} has not read its input within {within:?}; a part may wait for it")]
    NotRead { id: String, within: Duration },
    #[error("process {id} could not be seen ending within {within:?}; it was told to")]
    DoesNotEnd { id: String, within: Duration },
    #[error(
        "{path:?} is no text (it has {size} bytes); to see them, give `byte_offset`, and they come \
         as base64"
    )]
    Binary { path: PathBuf, size: u64 },
    #[error("{path:?} isn't UTF-8, so its text can't be edited; run_command can with other means")]
    NotText { path: PathBuf },
    #[error("{path:?} has {size} bytes, and at most {most} can be edited")]
    TooLarge { path: PathBuf, size: u64, most: u64 },
    #[error("{path:?} is a directory; list_directory shows what is in it")]
    IsDirectory { path: PathBuf },
    #[error("{path:?} is no directory; read_file shows what is in a file")]
    NotDirectory { path: PathBuf },
    #[error("{path:?} is there already, and `if_exists` says to leave it")]
    Exists { path: PathBuf },
    #[error("{path:?} was not changed: {why}")]
    Unedited { path: PathBuf, why: Unedited },
    #[error("give `byte_offset` for a part of the bytes or `start_line` for lines, not both")]
    LinesOrBytes,
    #[error("give a `pattern` to look for in files, a `glob` for their names, or both")]
    NothingToSearch,
    #[error("`pattern` is no regular expression")]
    Pattern(#[source] Box<regex::Error>),
    #[error("`glob` is no pattern for names")]
    Glob(#[source] globset::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Place(#[from] Error),
}

fn with_code(code: Option<i32>) -> String {
    code.map_or_else(String::new, |code| format!(" with exit code {code}"))
}

impl Mishap {
    /// What doesn't fit the schema is the caller's mistake and an error of the
    /// protocol; everything else is told to the model, who may do better.
    pub(super) fn answer(self) -> Result<CallToolResult, ErrorData> {
        match self {
            Mishap::Arguments { .. } | Mishap::OutOfRange { .. } => {
                Err(ErrorData::invalid_params(self.to_string(), None))
            }
            mishap => {
                let words = words(&mishap);
                Ok(CallToolResult::error(vec![ContentBlock::text(words)]))
            }
        }
    }
}

/// The error and its reasons.
fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        words.push_str(": ");
        words.push_str(&reason.to_string());
        source = reason.source();
    }
    words
}
