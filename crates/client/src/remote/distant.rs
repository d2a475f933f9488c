//! A process as it looks from a distance: of any session, without following it.

use std::{sync::Arc, time::Duration};

use outpost_protocol::{
    Empty, Method, ReadParams, ReadResult, SignalName, SignalParams, TerminateParams,
    TerminateResult,
};

use super::{core::Core, place::Guard, reins::announced};
use crate::{Chunk, Error, Exit, Page, Terminate, start::millis};

/// A process that is looked at without being followed: whoever has it doesn't
/// notice, nothing is pushed, nobody's place in its output moves and nobody is
/// held back. Made by [`Remote::distant`](crate::Remote::distant).
#[derive(Clone)]
pub struct Distant {
    /// Keeps the connection as long as somebody looks.
    guard: Arc<Guard>,
    session: Option<String>,
    process: String,
}

impl Distant {
    pub(super) fn new(guard: Arc<Guard>, session: Option<String>, process: String) -> Self {
        Distant {
            guard,
            session,
            process,
        }
    }

    /// The name of the process in its session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.process
    }

    /// Output behind `after_seq` that is still retained, at least one chunk if
    /// there is one and then as much as fits `max_bytes`, with the state of the
    /// process. Waits up to `wait` if there is nothing to say.
    ///
    /// Cancel-safe.
    pub async fn read(
        &self,
        after_seq: u64,
        max_bytes: Option<usize>,
        wait: Duration,
    ) -> Result<Page, Error> {
        let params = ReadParams {
            process_id: self.process.clone(),
            after_seq: Some(after_seq),
            max_bytes: max_bytes.map(|bytes| bytes as u64),
            wait_ms: Some(millis(wait)),
            session_id: self.session()?,
        };
        let result: ReadResult = self.core().again(Method::ProcessRead, &params).await?;
        Ok(page_of(result))
    }

    /// Signals its whole group; one that has exited gets nothing. Released
    /// servers know the interrupt only, beyond them: `signals`.
    pub async fn signal(&self, signal: SignalName) -> Result<(), Error> {
        if signal != SignalName::Interrupt {
            announced(self.core().capabilities().signals, "signals")?;
        }
        let params = SignalParams {
            process_id: self.process.clone(),
            signal,
            session_id: self.session()?,
        };
        let Empty {} = self.core().once(Method::ProcessSignal, &params).await?;
        Ok(())
    }

    /// Ends it with its whole tree, and says whether it was running.
    pub async fn terminate(&self, how: Terminate) -> Result<bool, Error> {
        if how != Terminate::default() {
            announced(self.core().capabilities().terminate_tree, "terminateTree")?;
        }
        let params = TerminateParams {
            process_id: self.process.clone(),
            grace_ms: how.grace.map(millis),
            tree: how.tree,
            session_id: self.session()?,
        };
        let result: TerminateResult = self.core().once(Method::ProcessTerminate, &params).await?;
        Ok(result.running)
    }

    fn core(&self) -> &Arc<Core> {
        &self.guard.core
    }

    /// Another session is for the owner of the server to ask about.
    fn session(&self) -> Result<Option<String>, Error> {
        if self.session.is_some() {
            announced(self.core().capabilities().session_list, "sessionList")?;
        }
        Ok(self.session.clone())
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
