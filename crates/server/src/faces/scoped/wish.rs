//! What a client wants of a process, as far as the faces ask alike.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use outpost_engine::{Size, Start, Terminal, sandbox::policy::Policy};
use outpost_protocol::{self as wire, RpcError, Setting};

use crate::{
    Settings,
    convert::{self, Dialect},
};

/// How a client hears of output. The cap is per stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// When it comes.
    Streamed { cap: Option<u64> },
    /// At the end, as text.
    Kept { cap: Option<u64> },
}

impl Output {
    /// As the client wants it, or as the server has it.
    pub(crate) fn new(streamed: bool, cap: Setting<u64>, settings: &Settings) -> Self {
        let cap = cap.or(settings.output_bytes_cap);
        if streamed {
            Output::Streamed { cap }
        } else {
            Output::Kept { cap }
        }
    }
}

/// A process that is asked for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) name: String,
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// What it is confined to, if anything.
    pub(crate) sandbox: Option<Policy>,
    pub(crate) terminal: Terminal,
    pub(crate) timeout: Option<Duration>,
}

impl Wish {
    /// The terminal or the pipes of a process.
    pub(crate) fn terminal(
        dialect: &Dialect,
        tty: bool,
        stream_stdin: bool,
        size: Option<wire::Size>,
    ) -> Result<Terminal, RpcError> {
        if !tty {
            return match size {
                Some(_) => Err(dialect.size_without_terminal()),
                None => Ok(Terminal::Pipes {
                    stdin: stream_stdin,
                }),
            };
        }
        match size {
            None => Ok(Terminal::Pty(convert::DEFAULT_SIZE)),
            Some(size) => sized(dialect, size).map(Terminal::Pty),
        }
    }

    /// The time a process has.
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

    /// The same in the engine's terms: killed without a grace, read for a
    /// while after its exit, and kept for nobody.
    pub(crate) fn into_start(self, settings: &Settings) -> Start {
        Start {
            id: self.name,
            argv: self.argv,
            arg0: None,
            cwd: self.cwd,
            env: self.env,
            sandbox: self.sandbox,
            terminal: self.terminal,
            metadata: std::collections::BTreeMap::new(),
            timeout: self.timeout,
            drain: Some(settings.drain_within),
            retain_bytes: Some(0),
            kill_grace: Duration::ZERO,
        }
    }
}

/// A size that a terminal can have.
pub(super) fn sized(dialect: &Dialect, size: wire::Size) -> Result<Size, RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(dialect.empty_size());
    }
    Ok(convert::size(size))
}
