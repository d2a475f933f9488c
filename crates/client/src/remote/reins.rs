//! The control over a process of a server.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use outpost_protocol::{
    Base64Bytes, Empty, Method, ResizeParams, SignalName, SignalParams, Size, TerminateParams,
    TerminateResult, WriteParams, WriteResult, WriteStatus,
};

use super::{core::Core, place::Guard, tracked::Tracked};
use crate::{Error, Pending, Terminate, process::Reins, start::millis};

pub(super) struct RemoteReins {
    /// Keeps the connection as long as somebody holds one of its processes.
    pub(super) guard: Arc<Guard>,
    pub(super) tracked: Arc<Tracked>,
}

impl RemoteReins {
    fn core(&self) -> &Arc<Core> {
        &self.guard.core
    }

    fn id(&self) -> String {
        self.tracked.id().to_owned()
    }
}

/// Nothing that the server doesn't announce is asked of it.
pub(super) fn announced(can: bool, capability: &'static str) -> Result<(), Error> {
    if can {
        Ok(())
    } else {
        Err(Error::NotAnnounced { capability })
    }
}

impl Reins for RemoteReins {
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()> {
        Box::pin(async move {
            let core = self.core();
            if end {
                announced(core.capabilities().close_stdin, "closeStdin")?;
            }
            let number = core.names.fetch_add(1, Ordering::Relaxed);
            let params = WriteParams {
                process_id: self.id(),
                chunk: Some(Base64Bytes(bytes.into())),
                // The same one in every try: it is written once.
                write_id: Some(format!("{}-w{number}", core.prefix)),
                close_stdin: end,
            };
            let result: WriteResult = core.again(Method::ProcessWrite, &params).await?;
            match result.status {
                WriteStatus::Accepted => Ok(()),
                WriteStatus::StdinClosed => Err(Error::StdinClosed { id: self.id() }),
                WriteStatus::UnknownProcess | WriteStatus::Starting => {
                    Err(Error::UnknownProcess { id: self.id() })
                }
            }
        })
    }

    fn signal(&self, signal: SignalName) -> Pending<'_, ()> {
        Box::pin(async move {
            if signal != SignalName::Interrupt {
                announced(self.core().capabilities().signals, "signals")?;
            }
            let params = SignalParams {
                process_id: self.id(),
                signal,
                session_id: None,
            };
            let Empty {} = self.core().once(Method::ProcessSignal, &params).await?;
            Ok(())
        })
    }

    fn resize(&self, size: Size) -> Pending<'_, ()> {
        Box::pin(async move {
            announced(self.core().capabilities().resize, "resize")?;
            let params = ResizeParams {
                process_id: self.id(),
                size,
            };
            let Empty {} = self.core().once(Method::ProcessResize, &params).await?;
            Ok(())
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(async move {
            if how != Terminate::default() {
                announced(self.core().capabilities().terminate_tree, "terminateTree")?;
            }
            let params = TerminateParams {
                process_id: self.id(),
                grace_ms: how.grace.map(millis),
                tree: how.tree,
                session_id: None,
            };
            let result: TerminateResult =
                self.core().once(Method::ProcessTerminate, &params).await?;
            Ok(result.running)
        })
    }

    fn let_go(&self, end: bool) {
        if end {
            self.core().end_unwanted(self.tracked.id());
        }
        self.core().forget(&self.tracked);
    }
}
