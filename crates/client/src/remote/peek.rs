//! Reads and controls a process without following it.

use std::{sync::Arc, time::Duration};

use outpost_protocol::{
    Empty, Method, ReadParams, ReadResult, Signal, SignalParams, TerminateParams, TerminateResult,
};

use super::session::{Session, SessionGuard, require};
use crate::{Chunk, Error, Exit, Page, Terminate, start::millis};

/// Access to a process of any session, without following it.
///
/// Reading does not affect the process or its owner: no events are pushed, no cursor moves, and
/// the process is not held back. Created by
/// [`RemoteExecutor::inspect`](crate::RemoteExecutor::inspect).
#[derive(Clone)]
pub struct ProcessPeek {
    /// Keeps the connection open.
    guard: Arc<SessionGuard>,
    session_id: Option<String>,
    process_id: String,
}

impl ProcessPeek {
    pub(super) fn new(
        guard: Arc<SessionGuard>,
        session_id: Option<String>,
        process_id: String,
    ) -> Self {
        ProcessPeek {
            guard,
            session_id,
            process_id,
        }
    }

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
            require(
                self.session().capabilities().terminate_tree,
                "terminateTree",
            )?;
        }
        let params = TerminateParams {
            process_id: self.process_id.clone(),
            grace_ms: how.grace.map(millis),
            tree: how.tree,
            session_id: self.session_id()?,
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
        }),
        closed: result.closed,
        failure: result.failure,
    }
}
