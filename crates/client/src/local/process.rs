//! One process of a local executor: its control, and the task that moves its events from the
//! engine's journal into the client's log.

use std::sync::Arc;

use bytes::Bytes;
use outpost_engine::{self as engine, Epoch, EventListener, Seq, Session, Terminated};
use outpost_protocol::{RpcError, Signal, TerminalSize};
use tokio::sync::Notify;

use super::executor::Inner;
use crate::{
    Error, Pending, Terminate,
    process::{ProcessBackend, ProcessLog},
};

/// The limit of one batch.
const BATCH_BYTES: usize = 256 * 1024;

/// Controls one process.
pub(super) struct LocalBackend {
    /// Keeps the executor alive as long as there are handles of its processes.
    pub(super) executor: Arc<Inner>,
    pub(super) process: engine::Process,
}

impl ProcessBackend for LocalBackend {
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()> {
        Box::pin(async move {
            let status = self.process.write(bytes, None, end).await;
            Error::check_write(status, self.process.id())
        })
    }

    fn signal(&self, signal: Signal) -> Pending<'_, ()> {
        self.process.signal(signal);
        Box::pin(async { Ok(()) })
    }

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()> {
        Box::pin(async move {
            if size.rows == 0 || size.cols == 0 {
                let message = "size rows and cols must be greater than 0";
                return Err(RpcError::invalid_params(message).into());
            }
            let resized = self.executor.session.resize(self.process.id(), size);
            Ok(resized.map_err(|error| {
                RpcError::of_kind(error.kind(), error.errno(), error.to_string())
            })?)
        })
    }

    fn terminate(&self, how: Terminate) -> Pending<'_, bool> {
        Box::pin(async move {
            let session = &self.executor.session;
            let found = session.terminate(self.process.id(), how.grace, how.tree);
            Ok(found == Terminated::Running)
        })
    }

    fn release(&self, terminate: bool) {
        if terminate {
            self.process.terminate(None);
        }
        self.executor.forget(&self.process);
    }
}

/// Wakes the forwarder for new events, and for space in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Waker(Arc<Notify>);

impl EventListener for Waker {
    fn events_available(&self) {
        self.0.notify_one();
    }
}

/// Forwards events until the process or the executor is closed. It stops while the log is full, and
/// as the owner of the engine's journal it passes this backpressure on to the process.
pub(super) struct Forwarder {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) process: engine::Process,
    pub(super) log: Arc<ProcessLog>,
    pub(super) waker: Waker,
    pub(super) cursor: Seq,
}

impl Forwarder {
    pub(super) async fn run(mut self) {
        let listener: Arc<dyn EventListener> = Arc::new(self.waker.clone());
        let cursor = Some(self.cursor);
        self.session
            .attach(self.epoch, &self.process, cursor, &listener, |_| {});
        let mut events = Vec::new();
        while !self.log.is_ended() {
            if self.log.has_space() {
                self.process
                    .events_after(self.cursor, BATCH_BYTES, &mut events);
            }
            let Some(last) = events.last() else {
                self.waker.0.notified().await;
                continue;
            };
            let first = events[0].seq();
            let last = last.seq();
            if first != self.cursor.next() {
                self.log.fail(Error::Gap {
                    id: self.log.id().to_owned(),
                    from: self.cursor.next().0,
                    to: first.previous().0,
                });
                return;
            }
            self.log.append(events.drain(..));
            self.cursor = last;
            self.session.advance(self.epoch, &self.process, last);
            // Give the reader a turn during a flood of output.
            tokio::task::consume_budget().await;
        }
    }
}
