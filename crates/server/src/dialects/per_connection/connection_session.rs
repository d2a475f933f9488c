//! The processes of one dialect on one connection: starting, reporting, writing, resizing
//! and killing.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use outpost_engine::{
    Epoch, Process, ResourceLimits, Session, Start, StartError, Stdio, WriteStatus,
};
use outpost_protocol::{Empty, ErrorKind, RpcError, TerminalSize, base64};
use outpost_rpc::{MemoryCharge, ProcessLanes, charged_bytes};

use super::{
    dialect::Dialect,
    process_reporter::{ExitMessage, Output, ProcessReporter},
};
use crate::connection::Connection;

/// A private session that ends with its connection.
pub(crate) struct ConnectionSession {
    pub(super) connection: Arc<Connection>,
    /// Private: its id is not disclosed.
    pub(crate) inner: Session,
    epoch: Epoch,
    /// Lanes of its processes.
    pub(crate) lanes: ProcessLanes,
}

/// A namespace of process ids on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessIdSpace {
    /// `process/spawn`
    Spawn,
    /// `command/exec` with a client's process id.
    Command,
    /// `command/exec` without a process id.
    Unnamed,
    /// `command/exec` of the v0 dialect.
    V0,
}

/// The sessions of a connection, one per [`ProcessIdSpace`], each opened at its first use.
#[derive(Default)]
pub(crate) struct ConnectionSessions {
    open: [Option<Arc<ConnectionSession>>; 4],
    /// Number of commands without a process id so far.
    unnamed: u64,
}

impl ConnectionSessions {
    /// Returns a session, opening it if needed. Fails if the server is shutting down.
    pub(crate) fn get_or_open(
        &mut self,
        space: ProcessIdSpace,
        connection: &Arc<Connection>,
    ) -> Result<Arc<ConnectionSession>, RpcError> {
        let session = &mut self.open[space as usize];
        if session.is_none() {
            *session = ConnectionSession::open(connection);
        }
        session.clone().ok_or_else(RpcError::overloaded)
    }

    /// Returns a name for a command without a process id.
    pub(crate) fn generate_name(&mut self) -> String {
        self.unnamed += 1;
        self.unnamed.to_string()
    }

    /// Ends all processes of the connection.
    pub(crate) fn end(&mut self) {
        for session in self.open.iter_mut().filter_map(Option::take) {
            let engine = &session.connection.server.engine;
            engine.end_private_session(&session.inner);
        }
    }
}

impl ConnectionSession {
    /// Opens a session. Returns `None` if the server is shutting down.
    fn open(connection: &Arc<Connection>) -> Option<Arc<Self>> {
        let (session, epoch) = connection
            .server
            .engine
            .open_private_session(connection.peer)?;
        connection.sessions.lock().push(session.clone());
        Some(Arc::new(ConnectionSession {
            inner: session,
            epoch,
            lanes: ProcessLanes::new(&connection.server.tasks),
            connection: Arc::clone(connection),
        }))
    }

    /// Returns what the starts of all dialects have in common: no grace period, a drain
    /// timeout after the exit, and no retention.
    pub(super) fn start_defaults(&self) -> Start {
        Start {
            id: String::new(),
            argv: Vec::new(),
            arg0: None,
            cwd: PathBuf::new(),
            env: Vec::new(),
            sandbox: None,
            floor: None,
            network: None,
            stdio: Stdio::Pipes { stdin: false },
            metadata: BTreeMap::new(),
            timeout: None,
            drain: Some(self.connection.server.settings.drain_timeout),
            retain_bytes: Some(0),
            kill_grace: Duration::ZERO,
            max_processes: None,
            limits: ResourceLimits::default(),
            snapshot: None,
            observer: None,
        }
    }

    /// Starts a process in this session.
    pub(super) async fn start(&self, start: Start) -> Result<Process, StartError> {
        self.connection.start(&self.inner, start).await
    }

    /// Starts to push the process's output and its end to the client.
    pub(super) fn report(&self, process: &Process, output: Output, exit_message: ExitMessage) {
        let reporter = ProcessReporter::new(self, process, output, exit_message);
        let owner = (&self.inner, self.epoch);
        let feeds = &self.connection.feeds;
        feeds.open(owner, process, None, reporter);
    }

    /// Writes to stdin, and closes it if requested. The bytes keep `memory`. Waits while the queue is full.
    pub(super) async fn write(
        &self,
        dialect: &Dialect,
        name: &str,
        delta: Option<String>,
        close: bool,
        memory: Option<MemoryCharge>,
    ) -> Result<Empty, RpcError> {
        if delta.is_none() && !close {
            let message = format!("{} requires deltaBase64 or closeStdin", dialect.write);
            return Err(RpcError::invalid_params(message));
        }
        let bytes = base64::decode(delta.unwrap_or_default().as_bytes())
            .map_err(|error| RpcError::invalid_params(format!("invalid deltaBase64: {error}")))?;
        let process = self.running(dialect, name)?;
        let closed = |message: String| {
            Err(RpcError::invalid_request(message).with_kind(ErrorKind::StdinClosed))
        };
        if !process.info().takes_input {
            let process = dialect.process;
            return closed(format!("stdin streaming is not enabled for this {process}"));
        }
        let only_close = bytes.is_empty() && close;
        match process
            .write(charged_bytes(bytes, memory), None, close)
            .await
        {
            WriteStatus::Accepted => Ok(Empty {}),
            // Closing a closed stdin succeeds.
            _ if only_close => Ok(Empty {}),
            _ if !process.is_running() => Err(dialect.gone(name)),
            _ => closed("stdin is already closed".to_owned()),
        }
    }

    /// Resizes the terminal. Waits for a start in flight.
    pub(super) async fn resize(
        &self,
        dialect: &Dialect,
        name: &str,
        size: TerminalSize,
    ) -> Result<Empty, RpcError> {
        dialect.check_size(size)?;
        self.inner.wait_started(name).await;
        let process = self.running(dialect, name)?;
        if !process.is_pty() {
            let message = "failed to resize PTY: process is not attached to a PTY";
            return Err(RpcError::invalid_request(message).with_kind(ErrorKind::NotATerminal));
        }
        match process.resize(size) {
            Ok(()) => Ok(Empty {}),
            Err(_) if !process.is_running() => Err(dialect.gone(name)),
            Err(error) => Err(RpcError::internal(format!("failed to resize PTY: {error}"))),
        }
    }

    /// Kills a process with its tree. Waits for a start in flight.
    pub(super) async fn kill(&self, dialect: &Dialect, name: &str) -> Result<Empty, RpcError> {
        self.inner.wait_started(name).await;
        self.running(dialect, name)?.terminate(Some(Duration::ZERO));
        Ok(Empty {})
    }

    fn running(&self, dialect: &Dialect, name: &str) -> Result<Process, RpcError> {
        let process = self.inner.find(name);
        let process = process.map_err(|_| dialect.unknown(name))?;
        if process.is_running() {
            Ok(process)
        } else {
            Err(dialect.gone(name))
        }
    }
}
