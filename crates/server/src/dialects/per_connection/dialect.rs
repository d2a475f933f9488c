//! Error texts and start params of the dialects `spawn` and `command`, which share their
//! rules.

use std::time::Duration;

use outpost_engine::{StartError, Stdio, TerminalSize};
use outpost_protocol::{ErrorKind, Override, RpcError};

use crate::{Settings, convert};

/// The limit of an id in a dialect that documents none, in bytes.
pub(super) const MAX_SCOPED_NAME_BYTES: usize = 1024;

/// The parts of error texts that differ between dialects.
pub(super) struct Dialect {
    /// The method that starts a process.
    start: &'static str,
    /// The method that writes to stdin.
    pub(super) write: &'static str,
    /// The term for a terminal size.
    size: &'static str,
    /// The text before the id of an unknown process.
    unknown: &'static str,
    /// The text before a duplicate id.
    duplicate: &'static str,
    /// The text before the id of an exited process, and the term for a process without
    /// stdin.
    pub(super) process: &'static str,
    /// The term for a process in spawn errors.
    spawned: &'static str,
}

/// `process/spawn` and related methods.
pub(super) const SPAWN: Dialect = Dialect {
    start: "process/spawn",
    write: "process/writeStdin",
    size: "process size",
    unknown: "no active process for process handle",
    duplicate: "duplicate active process handle:",
    process: "process",
    spawned: "process",
};

/// `command/exec` and related methods.
pub(super) const COMMAND: Dialect = Dialect {
    start: "command/exec",
    write: "command/exec/write",
    size: "command/exec size",
    unknown: "no active command/exec for process id",
    duplicate: "duplicate active command/exec process id:",
    process: "command/exec",
    spawned: "command",
};

impl Dialect {
    pub(super) fn unknown(&self, name: &str) -> RpcError {
        RpcError::invalid_request(format!("{} {}", self.unknown, quoted(name)))
            .with_kind(ErrorKind::UnknownProcess)
    }

    pub(super) fn gone(&self, name: &str) -> RpcError {
        let (process, name) = (self.process, quoted(name));
        RpcError::invalid_request(format!("{process} {name} is no longer running"))
            .with_kind(ErrorKind::UnknownProcess)
    }

    /// Converts a start error. Invalid arguments count as a failed spawn here.
    pub(super) fn start_error(&self, error: &StartError) -> RpcError {
        let rejected = match error {
            StartError::Exists(name) => {
                RpcError::invalid_request(format!("{} {}", self.duplicate, quoted(name)))
            }
            StartError::TooMany | StartError::ProcessLimit(_) | StartError::SessionLimit(_) => {
                convert::start_error(error)
            }
            StartError::Spawn(spawn) => {
                RpcError::internal(format!("failed to spawn {}: {spawn}", self.spawned))
            }
            error if error.kind() == ErrorKind::Forbidden => {
                RpcError::not_permitted(error.to_string())
            }
            StartError::NotPermitted(error) => RpcError::not_permitted(error.to_string()),
            StartError::Sandbox(error) => RpcError::invalid_request(error.to_string()),
            StartError::NetworkProxy(_) | StartError::NotRecorded(_) => {
                RpcError::internal(error.to_string())
            }
            StartError::Limit(error) => RpcError::invalid_params(error.to_string()),
            StartError::Cancelled(_) | StartError::SessionEnded => {
                RpcError::invalid_request("the connection has ended")
            }
        };
        rejected.with_kind(error.kind()).with_errno(error.errno())
    }

    /// Chooses a terminal or pipes, and checks the size.
    pub(super) fn stdio(
        &self,
        tty: bool,
        stream_stdin: bool,
        size: Option<TerminalSize>,
    ) -> Result<Stdio, RpcError> {
        match size {
            Some(_) if !tty => Err(RpcError::invalid_params(format!(
                "{} size requires tty: true",
                self.start
            ))),
            None if !tty => Ok(Stdio::Pipes {
                stdin: stream_stdin,
            }),
            None => Ok(Stdio::Pty {
                size: TerminalSize::default(),
            }),
            Some(size) => self.check_size(size).map(|()| Stdio::Pty { size }),
        }
    }

    /// Checks that a terminal size is not empty.
    pub(super) fn check_size(&self, size: TerminalSize) -> Result<(), RpcError> {
        if size.rows == 0 || size.cols == 0 {
            return Err(RpcError::invalid_params(format!(
                "{} rows and cols must be greater than 0",
                self.size
            )));
        }
        Ok(())
    }

    /// Returns the timeout; `None` if the client disabled it.
    pub(super) fn timeout(
        &self,
        millis: Override<i64>,
        settings: &Settings,
    ) -> Result<Option<Duration>, RpcError> {
        match millis {
            Override::Unspecified => Ok(Some(settings.command_timeout)),
            Override::Off => Ok(None),
            Override::Value(millis) => match u64::try_from(millis) {
                Ok(millis) => Ok(Some(Duration::from_millis(millis))),
                Err(_) => Err(RpcError::invalid_params(format!(
                    "{} timeoutMs must be non-negative, got {millis}",
                    self.start
                ))),
            },
        }
    }
}

/// Quotes an id as in JSON.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
