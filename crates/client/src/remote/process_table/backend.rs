//! Operations on a remote process.

use std::sync::Arc;

use bytes::Bytes;
use outpost_protocol::{
    Base64Bytes, Empty, Method, ResizeParams, Signal, SignalParams, TerminalSize, TerminateParams,
    TerminateResult, WriteParams, WriteResult, WriteStatus,
};

use super::{ProcessTable, RemoteProcess};
use crate::{
    Error, Pending, Terminate,
    process::ProcessBackend,
    remote::session::{Session, SessionGuard, require},
    start::millis,
};

pub(crate) struct RemoteBackend {
    /// Keeps the session open while there is a handle of one of its processes.
    pub(crate) guard: Arc<SessionGuard>,
    pub(crate) table: Arc<ProcessTable>,
    pub(crate) process: Arc<RemoteProcess>,
}

impl RemoteBackend {
    fn session(&self) -> &Session {
        &self.guard.session
    }

    fn id(&self) -> String {
        self.process.id().to_owned()
    }
}

impl ProcessBackend for RemoteBackend {
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()> {
        Box::pin(async move {
            let session = self.session();
            if end {
                require(session.capabilities().close_stdin, "closeStdin")?;
            }
            let params = WriteParams {
                process_id: self.id(),
                chunk: Some(Base64Bytes(bytes.into())),
                // The id makes retries idempotent.
                write_id: Some(session.generate_id("w")),
                close_stdin: end,
            };
            let result: WriteResult = session.call_retrying(Method::ProcessWrite, &params).await?;
            match result.status {
                WriteStatus::Accepted => Ok(()),
                WriteStatus::StdinClosed => Err(Error::StdinClosed { id: self.id() }),
                WriteStatus::UnknownProcess | WriteStatus::Starting => {
                    Err(Error::UnknownProcess { id: self.id() })
                }
            }
        })
    }

    fn signal(&self, signal: Signal) -> Pending<'_, ()> {
        Box::pin(async move {
            if signal != Signal::Interrupt {
                require(self.session().capabilities().signals, "signals")?;
            }
            let params = SignalParams {
                process_id: self.id(),
                signal,
                session_id: None,
            };
            let Empty {} = self.session().call(Method::ProcessSignal, &params).await?;
            Ok(())
        })
    }

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()> {
        Box::pin(async move {
            require(self.session().capabilities().resize, "resize")?;
            let params = ResizeParams {
                process_id: self.id(),
                size,
            };
            let Empty {} = self.session().call(Method::ProcessResize, &params).await?;
            Ok(())
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(async move {
            if how != Terminate::default() {
                require(
                    self.session().capabilities().terminate_tree,
                    "terminateTree",
                )?;
            }
            let params = TerminateParams {
                process_id: self.id(),
                grace_ms: how.grace.map(millis),
                tree: how.tree,
                session_id: None,
            };
            let result: TerminateResult = self
                .session()
                .call(Method::ProcessTerminate, &params)
                .await?;
            Ok(result.running)
        })
    }

    fn release(&self, terminate: bool) {
        if terminate {
            self.table.terminate_orphan(self.process.id());
        }
        self.table.remove_if_unused(&self.process);
    }
}
