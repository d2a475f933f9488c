//! In which words a face refuses; the rules are the same.

use outpost_engine::StartError;
use outpost_protocol::RpcError;

/// The words of a face.
pub(crate) struct Dialect {
    /// The method that starts.
    pub(crate) start: &'static str,
    /// The method that writes.
    write: &'static str,
    /// What a size is called.
    size: &'static str,
    /// What goes before a process's name if there is none such,
    unknown: &'static str,
    /// if there is one already,
    duplicate: &'static str,
    /// and if it has ended.
    gone: &'static str,
    /// What couldn't be started.
    spawned: &'static str,
    /// What takes no input.
    without_input: &'static str,
}

/// `process/spawn` and its siblings.
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

/// `command/exec` and its siblings.
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
    }

    pub(crate) fn gone(&self, name: &str) -> RpcError {
        let gone = self.gone;
        RpcError::invalid_request(format!("{gone} {} is no longer running", quoted(name)))
    }

    /// Why a process did not start. What the system was never asked is a
    /// failed spawn too.
    pub(crate) fn start_error(&self, error: &StartError) -> RpcError {
        match error {
            StartError::Exists(name) => {
                RpcError::invalid_request(format!("{} {}", self.duplicate, quoted(name)))
            }
            StartError::TooMany => RpcError::overloaded(),
            StartError::Spawn(error) => {
                RpcError::internal(format!("failed to spawn {}: {error}", self.spawned))
            }
            StartError::Sandbox(refusal) => RpcError::invalid_request(refusal.to_string()),
            StartError::Cancelled(_) | StartError::SessionEnded => {
                RpcError::invalid_request("the connection has ended")
            }
        }
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
    }
}

/// A name as JSON would have it.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
