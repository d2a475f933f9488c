//! The control over a process of a local place.

use std::sync::Arc;

use bytes::Bytes;
use outpost_engine as engine;
use outpost_engine::{Terminated, WriteStatus};
use outpost_protocol::{SignalName, Size};

use super::{place::Inner, refusal};
use crate::{Error, Pending, Terminate, process::Reins};

pub(super) struct LocalReins {
    /// Keeps the place alive as long as somebody holds one of its processes.
    pub(super) place: Arc<Inner>,
    pub(super) process: engine::Process,
}

impl LocalReins {
    fn id(&self) -> &str {
        self.process.id()
    }
}

impl Reins for LocalReins {
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

    fn signal(&self, signal: SignalName) -> Pending<'_, ()> {
        self.process.signal(signal_of(signal));
        Box::pin(async { Ok(()) })
    }

    fn resize(&self, size: Size) -> Pending<'_, ()> {
        Box::pin(async move {
            refusal::check_size(size)?;
            let size = engine::Size {
                rows: size.rows,
                cols: size.cols,
            };
            let resized = self.place.session.resize(self.id(), size);
            resized.map_err(|error| refusal::of_resize(&error))
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(async move {
            let session = &self.place.session;
            let found = session.terminate(self.id(), how.grace, how.tree);
            Ok(found == Terminated::Running)
        })
    }

    fn let_go(&self, end: bool) {
        if end {
            self.process.end(None);
        }
        self.place.forget(&self.process);
    }
}

fn signal_of(name: SignalName) -> engine::Signal {
    match name {
        SignalName::Interrupt => engine::Signal::Interrupt,
        SignalName::Terminate => engine::Signal::Terminate,
        SignalName::Kill => engine::Signal::Kill,
        SignalName::Hangup => engine::Signal::Hangup,
        SignalName::Quit => engine::Signal::Quit,
        SignalName::Stop => engine::Signal::Stop,
        SignalName::Continue => engine::Signal::Continue,
        SignalName::User1 => engine::Signal::User1,
        SignalName::User2 => engine::Signal::User2,
        SignalName::WindowChange => engine::Signal::WindowChange,
    }
}
