//! Push feeds: a cursor on a process's journal that takes turns on the wire. Each dialect
//! encodes the events.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use outpost_engine::{Delivery, Epoch, Event, EventListener, Process, Seq, Session};
use outpost_rpc::{Feed, FrameBuffer, More, Outbox};
use parking_lot::Mutex;

use super::notifier::{Notifier, SharedNotificationOptions};

/// Encodes the events of one process for its client.
pub(crate) trait EventEncoder: Send + 'static {
    /// Consumes an event that needs no message now. Returns false for other events, which
    /// go to [`EventEncoder::encode`].
    fn consume(&mut self, _event: &Event) -> bool {
        false
    }

    /// Returns whether some output will be consumed from now on. It is then consumed when
    /// it happens, so that the process does not wait for a turn on the wire.
    fn consumes_inline(&self) -> bool {
        false
    }

    /// Appends the messages for an event.
    fn encode(&mut self, notifier: &mut Notifier<'_>, event: &Event);
}

/// The feeds of a connection, by process. A feed lives until the end of its process is written
/// or the connection ends ([`Feeds::clear`]). This table keeps it alive: the process has a
/// weak reference, and the outbox a strong one only while the feed waits for its turn.
pub(crate) struct Feeds {
    outbox: Outbox,
    notifications: SharedNotificationOptions,
    open: Mutex<HashMap<usize, Arc<dyn Feed>>>,
}

impl Feeds {
    pub(crate) fn new(outbox: &Outbox, notifications: &SharedNotificationOptions) -> Arc<Self> {
        Arc::new(Feeds {
            outbox: outbox.clone(),
            notifications: Arc::clone(notifications),
            open: Mutex::default(),
        })
    }

    /// Drops all feeds.
    pub(crate) fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        drop(open);
    }

    /// Pushes the events of a process to the connection, starting after `cursor` or after
    /// the cursor of its previous owner. Does nothing if the process has a feed already.
    pub(crate) fn open<T: EventEncoder>(
        self: &Arc<Self>,
        (session, epoch): (&Session, Epoch),
        process: &Process,
        cursor: Option<Seq>,
        encoder: T,
    ) {
        let feed = {
            let mut open = self.open.lock();
            let Entry::Vacant(vacant) = open.entry(process.key()) else {
                return;
            };
            let feed = Arc::new_cyclic(|me| PushFeed {
                me: me.clone(),
                process: process.clone(),
                session: session.clone(),
                epoch,
                delivery: session.delivery(),
                outbox: self.outbox.clone(),
                notifications: Arc::clone(&self.notifications),
                feeds: Arc::downgrade(self),
                consumes_inline: AtomicBool::new(encoder.consumes_inline()),
                position: Mutex::new(Position {
                    cursor: Seq::START,
                    closed: false,
                    next_needs_encoding: false,
                    encoder,
                }),
                queued: AtomicBool::new(false),
            });
            vacant.insert(Arc::clone(&feed) as Arc<dyn Feed>);
            feed
        };
        let listener: Arc<dyn EventListener> = Arc::clone(&feed) as Arc<dyn EventListener>;
        session.attach(epoch, process, cursor, &listener, |start| {
            feed.position.lock().cursor = start;
        });
    }
}

/// The pushed events of one process on one connection.
struct PushFeed<T> {
    me: Weak<PushFeed<T>>,
    process: Process,
    session: Session,
    /// Attachment of the session that this feed serves.
    epoch: Epoch,
    delivery: Delivery,
    outbox: Outbox,
    notifications: SharedNotificationOptions,
    feeds: Weak<Feeds>,
    position: Mutex<Position<T>>,
    /// Output may be consumed when it happens. Never reset.
    consumes_inline: AtomicBool,
    /// The feed is on the ready queue.
    queued: AtomicBool,
}

/// Progress of the feed in the journal.
struct Position<T> {
    cursor: Seq,
    closed: bool,
    /// The event after the cursor is known to need encoding. Saves scanning all events
    /// behind a slow reader's cursor again at every new event.
    next_needs_encoding: bool,
    encoder: T,
}

impl<T: EventEncoder> PushFeed<T> {
    /// Puts the feed on the ready queue, unless it is there already.
    fn enqueue(&self) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(me) = self.me.upgrade()
        {
            self.outbox.ready(me);
        }
    }

    /// Consumes events up to the first event that needs encoding. Returns whether there is
    /// one.
    fn consume(&self) -> bool {
        let mut position = self.position.lock();
        if position.next_needs_encoding {
            return true;
        }
        let mut events = Vec::new();
        self.process
            .events_after(position.cursor, usize::MAX, &mut events);
        for event in &events {
            if !position.encoder.consume(event) {
                position.next_needs_encoding = true;
                return true;
            }
            position.cursor = event.seq();
            self.process.advance(position.cursor);
        }
        false
    }
}

impl<T: EventEncoder> EventListener for PushFeed<T> {
    fn events_available(&self) {
        if !self.consumes_inline.load(Ordering::Acquire) || self.consume() {
            self.enqueue();
        }
    }
}

impl<T: EventEncoder> Feed for PushFeed<T> {
    fn fill(&self, frames: &mut FrameBuffer, budget: usize) -> More {
        // Cleared before the journal is read: later events must enqueue the feed again.
        self.queued.store(false, Ordering::Release);
        if !self.session.is_current(self.epoch) {
            return More::No;
        }
        let mut position = self.position.lock();
        let mut events = Vec::new();
        let more = self
            .process
            .events_after(position.cursor, budget, &mut events);
        position.next_needs_encoding = false;
        let mut notifier = Notifier::new(frames, &self.notifications);
        for event in &events {
            if !position.encoder.consume(event) {
                position.encoder.encode(&mut notifier, event);
            }
            position.cursor = event.seq();
            position.closed |= matches!(event, Event::Closed { .. });
        }
        if position.encoder.consumes_inline() {
            self.consumes_inline.store(true, Ordering::Release);
        }
        // If `queued` was set meanwhile, the setter has enqueued the feed.
        if more && !self.queued.swap(true, Ordering::AcqRel) {
            More::Yes
        } else {
            More::No
        }
    }

    fn written(&self) {
        let (cursor, closed) = {
            let position = self.position.lock();
            (position.cursor, position.closed)
        };
        // With acked delivery the client's acknowledgements advance the cursor.
        if self.delivery == Delivery::Push {
            self.session.advance(self.epoch, &self.process, cursor);
        }
        if closed && let Some(feeds) = self.feeds.upgrade() {
            feeds.open.lock().remove(&self.process.key());
        }
    }
}
