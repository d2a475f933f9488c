//! Pushed messages: a cursor on a process's log that takes its turns on the
//! wire. What is said of an event is for each face to know.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use outpost_engine::{Delivery, Epoch, Event, Process, Seq, Session, Watcher};
use outpost_protocol::encode_notification;
use outpost_rpc::{Feed, Frames, More, Outbox};
use serde::Serialize;

/// What a face says of the events of one process.
pub(crate) trait Teller: Send + 'static {
    /// Takes an event that nobody is told of, or not now; says whether it was
    /// one.
    fn absorb(&mut self, _event: &Event) -> bool {
        false
    }

    /// Whether some of the output is absorbed from now on. It is then taken
    /// where it happens, and the process waits for nobody's turn on the wire.
    fn absorbs(&self) -> bool {
        false
    }

    /// Appends what the client is told of an event.
    fn tell(&mut self, frames: &mut Frames, event: &Event);
}

/// The feeds of a connection. It owns them: processes know them weakly, so that
/// a connection that goes takes its feeds along.
#[derive(Default)]
pub(crate) struct Feeds {
    open: Mutex<HashMap<usize, Arc<dyn Feed>>>,
}

impl Feeds {
    /// Pushes everything of a process to the connection from now on: behind
    /// `cursor`, or behind what its last owner had. Does nothing if it is
    /// pushed already.
    pub(crate) fn open<T: Teller>(
        self: &Arc<Self>,
        outbox: &Outbox,
        (session, epoch): (&Session, Epoch),
        process: &Process,
        cursor: Option<Seq>,
        teller: T,
    ) {
        let feed = {
            let mut open = self.feeds();
            let Entry::Vacant(vacant) = open.entry(process.key()) else {
                return;
            };
            let feed = Arc::new_cyclic(|me| PushFeed {
                me: me.clone(),
                process: process.clone(),
                session: session.clone(),
                epoch,
                delivery: session.delivery(),
                outbox: outbox.clone(),
                feeds: Arc::downgrade(self),
                absorbs: AtomicBool::new(teller.absorbs()),
                sent: Mutex::new(Sent {
                    cursor: Seq::START,
                    closed: false,
                    tells_next: false,
                    teller,
                }),
                waiting: AtomicBool::new(false),
            });
            vacant.insert(Arc::clone(&feed) as Arc<dyn Feed>);
            feed
        };
        let watcher: Arc<dyn Watcher> = Arc::clone(&feed) as Arc<dyn Watcher>;
        session.attach(epoch, process, cursor, &watcher, |start| {
            feed.sent().cursor = start;
        });
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<usize, Arc<dyn Feed>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pushed events of one process on one connection.
struct PushFeed<T> {
    me: Weak<PushFeed<T>>,
    process: Process,
    session: Session,
    /// Which attachment of the session this is for.
    epoch: Epoch,
    delivery: Delivery,
    outbox: Outbox,
    feeds: Weak<Feeds>,
    sent: Mutex<Sent<T>>,
    /// Whether output may be taken where it happens; once set it stays.
    absorbs: AtomicBool,
    /// Whether it is on the ready queue already.
    waiting: AtomicBool,
}

/// How far the writer has come with this process.
struct Sent<T> {
    cursor: Seq,
    closed: bool,
    /// Whether the event behind the cursor is known to be one that the client
    /// is told of. Who doesn't read may be far behind, and looking through all
    /// of that again at every event would take longer and longer.
    tells_next: bool,
    teller: T,
}

impl<T: Teller> PushFeed<T> {
    fn sent(&self) -> MutexGuard<'_, Sent<T>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a turn on the wire.
    fn wait_for_turn(&self) {
        if !self.waiting.swap(true, Ordering::AcqRel)
            && let Some(me) = self.me.upgrade()
        {
            self.outbox.ready(me);
        }
    }

    /// Takes what nobody is told of, up to what somebody is; says whether there
    /// is such a thing.
    fn absorb(&self) -> bool {
        let mut sent = self.sent();
        if sent.tells_next {
            return true;
        }
        let mut events = Vec::new();
        self.process
            .events_after(sent.cursor, usize::MAX, &mut events);
        for event in &events {
            if !sent.teller.absorb(event) {
                sent.tells_next = true;
                return true;
            }
            sent.cursor = event.seq();
            self.process.advance(sent.cursor);
        }
        false
    }
}

/// Appends a notification.
pub(crate) fn notify<T: Serialize>(frames: &mut Frames, method: &str, params: &T) {
    let mut message = Vec::new();
    match encode_notification(&mut message, method, params) {
        Ok(()) => frames.message(&message),
        Err(error) => tracing::error!(%error, method, "failed to encode a notification"),
    }
}

impl<T: Teller> Watcher for PushFeed<T> {
    fn news(&self) {
        if !self.absorbs.load(Ordering::Acquire) || self.absorb() {
            self.wait_for_turn();
        }
    }
}

impl<T: Teller> Feed for PushFeed<T> {
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
        sent.tells_next = false;
        for event in &events {
            if !sent.teller.absorb(event) {
                sent.teller.tell(frames, event);
            }
            sent.cursor = event.seq();
            sent.closed |= matches!(event, Event::Closed { .. });
        }
        if sent.teller.absorbs() {
            self.absorbs.store(true, Ordering::Release);
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
