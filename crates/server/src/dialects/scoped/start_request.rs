//! Start parameters common to the dialects.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use outpost_engine::{Start, Stdio, TerminalSize, sandbox::policy::Policy};
use outpost_protocol::{RpcError, Setting};

use crate::{Settings, convert::Dialect};

/// Transfer of output to the client. The cap is per stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Sent as it arrives.
    Streamed { cap: Option<u64> },
    /// Sent with the exit, as text.
    Buffered { cap: Option<u64> },
}

impl Output {
    /// Applies the server's default cap if the client gives none.
    pub(crate) fn new(streamed: bool, cap: Setting<u64>, settings: &Settings) -> Self {
        let cap = cap.or(settings.output_bytes_cap);
        if streamed {
            Output::Streamed { cap }
        } else {
            Output::Buffered { cap }
        }
    }
}

/// A process to start.
#[derive(Debug)]
pub(crate) struct StartRequest {
    pub(crate) name: String,
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The sandbox policy; `None` to run unconfined.
    pub(crate) sandbox: Option<Policy>,
    pub(crate) stdio: Stdio,
    pub(crate) timeout: Option<Duration>,
}

impl StartRequest {
    /// Chooses a terminal or pipes, and checks the size.
    pub(crate) fn stdio(
        dialect: &Dialect,
        tty: bool,
        stream_stdin: bool,
        size: Option<TerminalSize>,
    ) -> Result<Stdio, RpcError> {
        if !tty {
            return match size {
                Some(_) => Err(dialect.size_without_terminal()),
                None => Ok(Stdio::Pipes {
                    stdin: stream_stdin,
                }),
            };
        }
        match size {
            None => Ok(Stdio::Pty {
                size: TerminalSize::default(),
            }),
            Some(size) => check_size(dialect, size).map(|size| Stdio::Pty { size }),
        }
    }

    /// Returns the timeout; `None` if the client disabled it.
    pub(crate) fn timeout(
        dialect: &Dialect,
        millis: Setting<i64>,
        settings: &Settings,
    ) -> Result<Option<Duration>, RpcError> {
        match millis {
            Setting::Unspecified => Ok(Some(settings.command_timeout)),
            Setting::Off => Ok(None),
            Setting::Value(millis) => match u64::try_from(millis) {
                Ok(millis) => Ok(Some(Duration::from_millis(millis))),
                Err(_) => Err(dialect.negative_timeout(millis)),
            },
        }
    }

    /// Converts to the engine's type: no grace period, a drain timeout after the exit, and
    /// no retention.
    pub(crate) fn into_start(self, settings: &Settings) -> Start {
        Start {
            id: self.name,
            argv: self.argv,
            arg0: None,
            cwd: self.cwd,
            env: self.env,
            sandbox: self.sandbox,
            stdio: self.stdio,
            metadata: std::collections::BTreeMap::new(),
            timeout: self.timeout,
            drain: Some(settings.drain_timeout),
            retain_bytes: Some(0),
            kill_grace: Duration::ZERO,
        }
    }
}

/// Checks that a terminal size is not empty.
pub(super) fn check_size(dialect: &Dialect, size: TerminalSize) -> Result<TerminalSize, RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(dialect.empty_size());
    }
    Ok(size)
}
