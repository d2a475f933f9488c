//! Pushed notifications: a cursor on a process's log that takes its turns on the
//! wire.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use outpost_engine::{Delivery, Epoch, Event, Process, Seq, Session, Watcher};
use outpost_protocol::{
    OutputFrame, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessExited, encode_notification,
};
use outpost_rpc::{Feed, Frames, More, Outbox};
use serde::Serialize;

use crate::convert;

/// The feeds of a connection. It owns them: processes know them weakly, so that
/// a connection that goes takes its feeds along.
#[derive(Default)]
pub(crate) struct Feeds {
    open: Mutex<HashMap<usize, Arc<PushFeed>>>,
}

impl Feeds {
    /// Pushes everything of a process to the connection from now on: behind
    /// `cursor`, or behind what its last owner had. Does nothing if it is
    /// pushed already.
    pub(crate) fn open(
        self: &Arc<Self>,
        outbox: &Outbox,
        session: &Session,
        epoch: Epoch,
        process: &Process,
        cursor: Option<Seq>,
    ) {
        let feed = {
            let mut open = self.feeds();
            let Entry::Vacant(vacant) = open.entry(process.key()) else {
                return;
            };
            let feed = Arc::new_cyclic(|me| PushFeed {
                me: me.clone(),
                frame: OutputFrame::new(process.id()),
                process: process.clone(),
                session: session.clone(),
                epoch,
                delivery: session.delivery(),
                outbox: outbox.clone(),
                feeds: Arc::downgrade(self),
                sent: Mutex::new(Sent {
                    cursor: Seq::START,
                    closed: false,
                }),
                waiting: AtomicBool::new(false),
            });
            Arc::clone(vacant.insert(feed))
        };
        let watcher: Arc<dyn Watcher> = Arc::clone(&feed) as Arc<dyn Watcher>;
        session.attach(epoch, process, cursor, &watcher, |start| {
            feed.sent().cursor = start;
        });
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
    session: Session,
    /// Which attachment of the session this is for.
    epoch: Epoch,
    delivery: Delivery,
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
        if !self.session.is_current(self.epoch) {
            return More::No;
        }
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
        let (cursor, closed) = {
            let sent = self.sent();
            (sent.cursor, sent.closed)
        };
        // Who acknowledges says so itself.
        if self.delivery == Delivery::Push {
            self.session.advance(self.epoch, &self.process, cursor);
        }
        if closed && let Some(feeds) = self.feeds.upgrade() {
            feeds.feeds().remove(&self.process.key());
        }
    }
}
