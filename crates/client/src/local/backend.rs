//! Controls one process of a local executor.

use std::sync::Arc;

use bytes::Bytes;
use outpost_engine as engine;
use outpost_engine::{Terminated, WriteStatus};
use outpost_protocol::{Signal, TerminalSize};

use super::{errors, executor::Inner};
use crate::{Error, Pending, Terminate, process::ProcessBackend};

pub(super) struct LocalBackend {
    /// Keeps the executor alive as long as there are handles of its processes.
    pub(super) executor: Arc<Inner>,
    pub(super) process: engine::Process,
}

impl LocalBackend {
    fn id(&self) -> &str {
        self.process.id()
    }
}

impl ProcessBackend for LocalBackend {
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()> {
        Box::pin(async move {
            let id = || self.id().to_owned();
            match self.process.write(bytes, None, end).await {
                WriteStatus::Accepted => Ok(()),
                WriteStatus::StdinClosed => Err(Error::StdinClosed { id: id() }),
                WriteStatus::UnknownProcess | WriteStatus::Starting => {
                    Err(Error::UnknownProcess { id: id() })
                }
            }
        })
    }

    fn signal(&self, signal: Signal) -> Pending<'_, ()> {
        self.process.signal(signal);
        Box::pin(async { Ok(()) })
    }

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()> {
        Box::pin(async move {
            errors::check_size(size)?;
            let resized = self.executor.session.resize(self.id(), size);
            resized.map_err(|error| errors::resize_error(&error))
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(async move {
            let session = &self.executor.session;
            let found = session.terminate(self.id(), how.grace, how.tree);
            Ok(found == Terminated::Running)
        })
    }

    fn release(&self, terminate: bool) {
        if terminate {
            self.process.end(None);
        }
        self.executor.forget(&self.process);
    }
}
