//! Error texts of the dialects `spawn` and `command`, which share their rules.

use outpost_engine::StartError;
use outpost_protocol::{ErrorKind, RpcError};

/// The parts of error texts that differ between dialects.
pub(crate) struct Dialect {
    /// The method that starts a process.
    pub(crate) start: &'static str,
    /// The method that writes to stdin.
    write: &'static str,
    /// The term for a terminal size.
    size: &'static str,
    /// The text before the id of an unknown process.
    unknown: &'static str,
    /// The text before a duplicate id.
    duplicate: &'static str,
    /// The text before the id of an exited process.
    gone: &'static str,
    /// The term for a process in spawn errors.
    spawned: &'static str,
    /// The term for a process without stdin.
    without_input: &'static str,
}

/// `process/spawn` and related methods.
pub(crate) const SPAWN: Dialect = Dialect {
    start: "process/spawn",
    write: "process/writeStdin",
    size: "process size",
    unknown: "no active process for process handle",
    duplicate: "duplicate active process handle:",
    gone: "process",
    spawned: "process",
    without_input: "process",
};

/// `command/exec` and related methods.
pub(crate) const COMMAND: Dialect = Dialect {
    start: "command/exec",
    write: "command/exec/write",
    size: "command/exec size",
    unknown: "no active command/exec for process id",
    duplicate: "duplicate active command/exec process id:",
    gone: "command/exec",
    spawned: "command",
    without_input: "command/exec",
};

impl Dialect {
    pub(crate) fn unknown(&self, name: &str) -> RpcError {
        RpcError::invalid_request(format!("{} {}", self.unknown, quoted(name)))
            .with_kind(ErrorKind::UnknownProcess)
    }

    pub(crate) fn gone(&self, name: &str) -> RpcError {
        let gone = self.gone;
        RpcError::invalid_request(format!("{gone} {} is no longer running", quoted(name)))
            .with_kind(ErrorKind::UnknownProcess)
    }

    /// Converts a start error. Invalid arguments count as a failed spawn here.
    pub(crate) fn start_error(&self, error: &StartError) -> RpcError {
        let rejected = match error {
            StartError::Exists(name) => {
                RpcError::invalid_request(format!("{} {}", self.duplicate, quoted(name)))
            }
            StartError::TooMany => RpcError::overloaded(),
            StartError::Spawn(spawn) => {
                RpcError::internal(format!("failed to spawn {}: {spawn}", self.spawned))
            }
            StartError::Sandbox(error) => RpcError::invalid_request(error.to_string()),
            StartError::Cancelled(_) | StartError::SessionEnded => {
                RpcError::invalid_request("the connection has ended")
            }
        };
        rejected.with_kind(error.kind()).with_errno(error.errno())
    }

    pub(crate) fn size_without_terminal(&self) -> RpcError {
        RpcError::invalid_params(format!("{} size requires tty: true", self.start))
    }

    pub(crate) fn empty_size(&self) -> RpcError {
        RpcError::invalid_params(format!(
            "{} rows and cols must be greater than 0",
            self.size
        ))
    }

    pub(crate) fn negative_timeout(&self, millis: i64) -> RpcError {
        RpcError::invalid_params(format!(
            "{} timeoutMs must be non-negative, got {millis}",
            self.start
        ))
    }

    pub(crate) fn nothing_to_write(&self) -> RpcError {
        RpcError::invalid_params(format!("{} requires deltaBase64 or closeStdin", self.write))
    }

    pub(crate) fn takes_no_input(&self) -> RpcError {
        RpcError::invalid_request(format!(
            "stdin streaming is not enabled for this {}",
            self.without_input
        ))
        .with_kind(ErrorKind::StdinClosed)
    }
}

/// Quotes an id as in JSON.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
