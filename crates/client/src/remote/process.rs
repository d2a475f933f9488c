//! Operations on one process: of a public handle, or without following the process.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_protocol::{
    Base64Bytes, Empty, Method, NetworkParams, NetworkResult as NetworkActivity, ReadParams,
    ReadResult, ResizeParams, Signal, SignalParams, TerminalSize, TerminateParams, TerminateResult,
    WriteParams, WriteResult,
};

use super::{
    process_table::{ProcessTable, RemoteProcess},
    session::{Session, SessionGuard, require},
};
use crate::{Chunk, Error, Exit, Page, Pending, Terminate, process::ProcessBackend, start::millis};

/// Access to a process of any session, without following it.
///
/// Reading does not affect the process or its owner: no events are pushed, no cursor moves, and
/// the process is not held back. Created by
/// [`RemoteExecutor::inspect`](crate::RemoteExecutor::inspect).
#[derive(Clone)]
pub struct ProcessPeek {
    /// Keeps the connection open.
    pub(super) guard: Arc<SessionGuard>,
    pub(super) session_id: Option<String>,
    pub(super) process_id: String,
}

impl ProcessPeek {
    /// Returns the id of the process.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.process_id
    }

    /// Reads retained output after `after_seq`: at least one chunk if there is one, then as much
    /// as fits `max_bytes`, with the state of the process. Waits up to `wait` for something new.
    ///
    /// Cancel safe.
    pub async fn read(
        &self,
        after_seq: u64,
        max_bytes: Option<usize>,
        wait: Duration,
    ) -> Result<Page, Error> {
        let params = ReadParams {
            process_id: self.process_id.clone(),
            after_seq: Some(after_seq),
            max_bytes: max_bytes.map(|bytes| bytes as u64),
            wait_ms: Some(millis(wait)),
            session_id: self.session_id()?,
        };
        let session = self.session();
        let result: ReadResult = session.call_retrying(Method::ProcessRead, &params).await?;
        Ok(page_of(result))
    }

    /// Returns the decisions and the traffic of its managed network. Fails if it has none. The server
    /// must announce `processNetwork`.
    ///
    /// Cancel safe.
    pub async fn network(&self) -> Result<NetworkActivity, Error> {
        require(
            self.session().capabilities().process_network,
            "processNetwork",
        )?;
        let params = NetworkParams {
            process_id: self.process_id.clone(),
            session_id: self.session_id()?,
        };
        let session = self.session();
        session.call_retrying(Method::ProcessNetwork, &params).await
    }

    /// Signals the process group. Does nothing if the process has exited. For signals other than
    /// [`Signal::Interrupt`], the server must announce `signals`.
    pub async fn signal(&self, signal: Signal) -> Result<(), Error> {
        if signal != Signal::Interrupt {
            require(self.session().capabilities().signals, "signals")?;
        }
        let params = SignalParams {
            process_id: self.process_id.clone(),
            signal,
            session_id: self.session_id()?,
        };
        let Empty {} = self.session().call(Method::ProcessSignal, &params).await?;
        Ok(())
    }

    /// Terminates the process tree and returns whether the process was running.
    pub async fn terminate(&self, how: Terminate) -> Result<bool, Error> {
        if how != Terminate::default() {
            let capabilities = self.session().capabilities();
            require(capabilities.terminate_tree, "terminateTree")?;
        }
        let params = TerminateParams {
            grace_ms: how.grace.map(millis),
            tree: how.tree,
            session_id: self.session_id()?,
            ..terminate_params(self.process_id.clone())
        };
        let session = self.session();
        let result: TerminateResult = session.call(Method::ProcessTerminate, &params).await?;
        Ok(result.running)
    }

    fn session(&self) -> &Session {
        &self.guard.session
    }

    /// Returns the id of another session. Only the owner of the server may access it.
    fn session_id(&self) -> Result<Option<String>, Error> {
        if self.session_id.is_some() {
            require(self.session().capabilities().session_list, "sessionList")?;
        }
        Ok(self.session_id.clone())
    }
}

fn page_of(result: ReadResult) -> Page {
    let chunks = result.chunks.into_iter().map(|chunk| Chunk {
        seq: chunk.seq,
        stream: chunk.stream,
        bytes: chunk.chunk.into(),
    });
    Page {
        chunks: chunks.collect(),
        next_seq: result.next_seq,
        exit: result.exited.then(|| Exit {
            code: result.exit_code.unwrap_or(-1),
            sandbox_denied: result.sandbox_denied,
            ended_by: result.ended_by,
            usage: result.usage,
        }),
        closed: result.closed,
        failure: result.failure,
    }
}

/// Params that terminate a process of this session with its own grace period.
pub(super) fn terminate_params(process_id: String) -> TerminateParams {
    TerminateParams {
        process_id,
        grace_ms: None,
        tree: false,
        session_id: None,
    }
}

/// The operations of a [`Process`](crate::Process) handle.
pub(super) struct RemoteBackend {
    /// Keeps the session open while there is a handle of one of its processes.
    pub(super) peek: ProcessPeek,
    pub(super) table: Arc<ProcessTable>,
    pub(super) process: Arc<RemoteProcess>,
}

impl ProcessBackend for RemoteBackend {
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()> {
        Box::pin(async move {
            let session = self.peek.session();
            if end {
                require(session.capabilities().close_stdin, "closeStdin")?;
            }
            let params = WriteParams {
                process_id: self.process.id().to_owned(),
                chunk: Some(Base64Bytes(bytes.into())),
                // The id makes retries idempotent.
                write_id: Some(session.generate_id("w")),
                close_stdin: end,
            };
            let result: WriteResult = session.call_retrying(Method::ProcessWrite, &params).await?;
            Error::check_write(result.status, self.process.id())
        })
    }

    fn signal(&self, signal: Signal) -> Pending<'_, ()> {
        Box::pin(self.peek.signal(signal))
    }

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()> {
        Box::pin(async move {
            let session = self.peek.session();
            require(session.capabilities().resize, "resize")?;
            let params = ResizeParams {
                process_id: self.process.id().to_owned(),
                size,
            };
            let Empty {} = session.call(Method::ProcessResize, &params).await?;
            Ok(())
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(self.peek.terminate(how))
    }

    fn release(&self, terminate: bool) {
        if terminate {
            self.table.terminate_orphan(self.process.id());
        }
        self.table.remove_if_unused(&self.process);
    }
}
