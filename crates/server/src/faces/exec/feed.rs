//! Pushed notifications: a cursor on a process's log that takes its turns on the
//! wire.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use outpost_engine::{Event, Process, Seq, Watcher};
use outpost_protocol::{
    OutputFrame, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessExited, encode_notification,
};
use outpost_rpc::{Feed, Frames, More, Outbox};
use serde::Serialize;

use crate::{connection::Caller, convert};

/// The feeds of a connection. It owns them: processes know them weakly, so that
/// a connection that goes takes its feeds along.
#[derive(Default)]
pub(crate) struct Feeds {
    open: Mutex<HashMap<usize, Arc<PushFeed>>>,
}

impl Feeds {
    /// Pushes everything of a process behind `cursor` to the caller from now
    /// on.
    pub(crate) fn open(&self, caller: &Caller, process: Process, cursor: Seq) {
        let feed = Arc::new_cyclic(|me| PushFeed {
            me: me.clone(),
            frame: OutputFrame::new(process.id()),
            process: process.clone(),
            outbox: caller.outbox.clone(),
            feeds: Arc::downgrade(&caller.feeds),
            sent: Mutex::new(Sent {
                cursor,
                closed: false,
            }),
            waiting: AtomicBool::new(false),
        });
        self.feeds().insert(feed.key(), Arc::clone(&feed));
        let watcher: Arc<dyn Watcher> = feed;
        caller
            .session
            .attach(caller.epoch, &process, cursor, &watcher);
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<usize, Arc<PushFeed>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pushed events of one process on one connection.
struct PushFeed {
    me: Weak<PushFeed>,
    process: Process,
    frame: OutputFrame,
    outbox: Outbox,
    feeds: Weak<Feeds>,
    sent: Mutex<Sent>,
    /// Whether it is on the ready queue already.
    waiting: AtomicBool,
}

/// How far the writer has come with this process.
struct Sent {
    cursor: Seq,
    closed: bool,
}

impl PushFeed {
    fn key(&self) -> usize {
        self.me.as_ptr() as usize
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, frames: &mut Frames, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let stream = convert::stream_name(chunk.stream);
                let len = self
                    .frame
                    .encoded_len(chunk.seq.0, stream, chunk.bytes.len());
                let out = frames.begin(len);
                self.frame.encode(out, chunk.seq.0, stream, &chunk.bytes);
                frames.finish();
            }
            Event::Exited { seq, exit } => notify(
                frames,
                PROCESS_EXITED,
                &ProcessExited {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                    exit_code: exit.code,
                    sandbox_denied: exit.sandbox_denied,
                },
            ),
            Event::Closed { seq } => notify(
                frames,
                PROCESS_CLOSED,
                &ProcessClosed {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                },
            ),
        }
    }
}

fn notify<T: Serialize>(frames: &mut Frames, method: &str, params: &T) {
    let mut message = Vec::new();
    match encode_notification(&mut message, method, params) {
        Ok(()) => frames.message(&message),
        Err(error) => tracing::error!(%error, method, "failed to encode a notification"),
    }
}

impl Watcher for PushFeed {
    fn news(&self) {
        if !self.waiting.swap(true, Ordering::AcqRel)
            && let Some(me) = self.me.upgrade()
        {
            self.outbox.ready(me);
        }
    }
}

impl Feed for PushFeed {
    fn fill(&self, frames: &mut Frames, budget: usize) -> More {
        // Before looking at the log: news that come from now on must put the
        // feed on the queue again.
        self.waiting.store(false, Ordering::Release);
        let mut sent = self.sent();
        let mut events = Vec::new();
        let more = self.process.events_after(sent.cursor, budget, &mut events);
        for event in &events {
            self.push(frames, event);
            sent.cursor = event.seq();
            sent.closed |= matches!(event, Event::Closed { .. });
        }
        // Whoever sets the mark puts the feed on the queue.
        if more && !self.waiting.swap(true, Ordering::AcqRel) {
            More::Yes
        } else {
            More::No
        }
    }

    fn written(&self) {
        let sent = self.sent();
        self.process.advance(sent.cursor);
        if sent.closed
            && let Some(feeds) = self.feeds.upgrade()
        {
            feeds.feeds().remove(&self.key());
        }
    }
}
