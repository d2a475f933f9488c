//! Queue of outgoing messages and ready feeds.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{FrameBuffer, MemoryCharge, MemoryShare, Ticket, write_progress::WriteProgress};

/// Budget for large messages that wait to be written, in KiB.
const BULK_KIB: usize = 4 * 1024;
/// Number of unwritten messages from which the connection is not read.
const MAX_UNWRITTEN_MESSAGES: usize = 4096;
/// Bytes of unwritten messages from which the connection is not read. Even small responses
/// can be large, because ids and names are echoed.
const MAX_UNWRITTEN_BYTES: usize = 2 * 1024 * 1024;

/// Reason for closing a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed the connection, or it is no longer needed.
    Normal,
    /// The server is shutting down.
    GoingAway,
    /// The peer violated the protocol.
    ProtocolError,
    /// Another connection has taken the session over.
    TakenOver,
    /// There are too many connections, and this one was idle.
    GivesWay,
    /// Others wait for the memory that this connection holds, and its peer does not read.
    Unread,
    /// The client's credential is no longer valid.
    Unauthorized,
}

impl CloseReason {
    /// Returns its name, for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CloseReason::Normal => "closed",
            CloseReason::GoingAway => "shutdown",
            CloseReason::ProtocolError => "protocol_error",
            CloseReason::TakenOver => "taken_over",
            CloseReason::GivesWay => "gives_way",
            CloseReason::Unread => "unread",
            CloseReason::Unauthorized => "unauthorized",
        }
    }

    /// Returns the code and the reason text of the close frame.
    #[must_use]
    pub fn code(self) -> (u16, &'static str) {
        match self {
            CloseReason::Normal => (1000, ""),
            CloseReason::GoingAway => (1001, "server is shutting down"),
            CloseReason::ProtocolError => (1002, "websocket protocol error"),
            CloseReason::GivesWay => (1013, "too many connections, and this one was idle"),
            CloseReason::Unread => (1013, "memory is needed, and this connection was not read"),
            CloseReason::Unauthorized => (4401, "the token has expired or was revoked"),
            CloseReason::TakenOver => (4001, "session was taken over by another connection"),
        }
    }
}

/// Part of a message that is too large to be buffered as a whole.
#[derive(Debug)]
pub struct MessageFragment {
    /// The next bytes of the message.
    pub bytes: Vec<u8>,
    /// Whether the message ends with them.
    pub last: bool,
}

/// An encoded message, with the resources that it holds until it is queued or written.
#[derive(Debug)]
pub struct OutgoingMessage {
    /// The encoded message, without framing.
    pub bytes: Vec<u8>,
    /// The rest of the message. If the sender ends it without a last block, the connection is
    /// closed, because the message cannot be completed.
    pub rest: Option<mpsc::Receiver<MessageFragment>>,
    /// Admission of the request that this responds to. Released when the response is
    /// queued; queued messages have their own bound.
    pub ticket: Option<Ticket>,
    /// Memory reserved for a large message. Released when it is written.
    pub reservation: Option<Reservation>,
}

impl OutgoingMessage {
    /// Creates a message without ticket and reservation.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        OutgoingMessage {
            bytes,
            rest: None,
            ticket: None,
            reservation: None,
        }
    }
}

impl OutgoingMessage {
    /// The memory of the message if it has no reservation.
    fn unreserved_bytes(&self) -> usize {
        match self.reservation {
            Some(_) => 0,
            // The queue grows by doubling.
            None => self.bytes.capacity() + 2 * size_of::<OutgoingMessage>(),
        }
    }
}

/// Whether a feed has frames left after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// The feed needs another turn.
    Yes,
    /// The feed is drained, and calls [`Outbox::ready`] for its next turn.
    No,
}

/// A source of frames that takes turns with the other feeds of its connection.
pub trait Feed: Send + Sync {
    /// Appends frames with about `budget` payload bytes at most.
    fn fill(&self, frames: &mut FrameBuffer, budget: usize) -> More;

    /// Called after all frames appended so far were handed to the transport.
    fn written(&self);
}

/// Memory reserved for a large message. Released on drop.
#[derive(Debug)]
pub struct Reservation {
    _space: OwnedSemaphorePermit,
    /// `None` if the memory of the connection is not limited.
    _memory: Option<MemoryCharge>,
}

/// The sending side of a connection. Clones share the queue.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

/// The queue of a connection, shared by its outbox handles and its writing task.
struct Shared {
    state: Mutex<State>,
    /// Notified when there is something to write.
    work: Notify,
    /// Notified when queued messages were written.
    drained: Notify,
    bulk: Arc<Semaphore>,
    /// Memory of the connection; `None` if it is not limited.
    memory: Option<MemoryShare>,
    /// Cancelled when nothing can be sent any more. Ends the connection's tasks.
    closed: CancellationToken,
}

/// The messages, feeds and control frames to write, behind one lock.
#[derive(Default)]
pub(super) struct State {
    /// Unwritten messages, in order.
    messages: VecDeque<OutgoingMessage>,
    /// Total size of `messages`.
    message_bytes: usize,
    /// Memory of the messages without a reservation.
    unreserved_bytes: usize,
    /// The charge for `unreserved_bytes`.
    memory: Option<MemoryCharge>,
    /// Feeds with frames to send, in order of their turns.
    pub(super) ready: VecDeque<Arc<dyn Feed>>,
    /// Payload of the last unanswered ping. RFC 6455 requires a pong for the last ping only.
    pub(super) pong: Option<Bytes>,
    /// A ping was requested.
    pub(super) ping: bool,
    /// A close was requested.
    pub(super) close: Option<CloseReason>,
}

impl State {
    pub(super) fn next_message(&mut self) -> Option<OutgoingMessage> {
        let message = self.messages.pop_front()?;
        self.message_bytes -= message.bytes.len();
        self.unreserved_bytes -= message.unreserved_bytes();
        if self.unreserved_bytes == 0 {
            self.memory = None;
        }
        Some(message)
    }

    /// Takes memory for the messages without a reservation. Returns false if there is none.
    fn charge_messages(&mut self, share: &MemoryShare) -> bool {
        let charge = self.memory.get_or_insert_with(|| share.empty_charge());
        let missing = self.unreserved_bytes.saturating_sub(charge.bytes());
        charge.try_grow(missing)
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.ready.is_empty()
            && self.pong.is_none()
            && !self.ping
            && self.close.is_none()
    }
}

impl Outbox {
    /// Creates an empty outbox. `closed` is cancelled when the writer ends.
    #[must_use]
    pub fn new(closed: CancellationToken) -> Self {
        Self::create(closed, None)
    }

    /// Creates an empty outbox whose messages take their memory from `share`.
    #[must_use]
    pub fn with_memory(closed: CancellationToken, share: MemoryShare) -> Self {
        Self::create(closed, Some(share))
    }

    fn create(closed: CancellationToken, memory: Option<MemoryShare>) -> Self {
        Outbox {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                work: Notify::new(),
                drained: Notify::new(),
                bulk: Arc::new(Semaphore::new(BULK_KIB)),
                memory,
                closed,
            }),
        }
    }

    /// Queues a message. It is written before any output that is not yet in a write.
    pub fn send(&self, mut message: OutgoingMessage) {
        self.update(|state| {
            // Released in the same step as the queueing: a client that reads the response
            // and sends its next request must be admitted, and `Admission::idle` must
            // imply that all responses are queued.
            drop(message.ticket.take());
            state.message_bytes += message.bytes.len();
            state.unreserved_bytes += message.unreserved_bytes();
            state.messages.push_back(message);
        });
    }

    /// Queues a message that may be lost, unless so many are unwritten that the peer seems not to read.
    /// Returns whether it was queued.
    pub fn try_send(&self, message: OutgoingMessage) -> bool {
        let has_space = {
            let state = self.state();
            state.messages.len() < MAX_UNWRITTEN_MESSAGES / 4
                && state.message_bytes < MAX_UNWRITTEN_BYTES / 4
        };
        if has_space {
            self.send(message);
        }
        has_space
    }

    /// Queues a feed for its next turn. It must not be queued already.
    pub fn ready(&self, feed: Arc<dyn Feed>) {
        self.update(|state| state.ready.push_back(feed));
    }

    /// Queues a pong.
    pub fn pong(&self, payload: Bytes) {
        self.update(|state| state.pong = Some(payload));
    }

    /// Queues a ping.
    pub fn ping(&self) {
        self.update(|state| state.ping = true);
    }

    /// Closes the connection after the queued messages were written. The first reason wins.
    pub fn close(&self, reason: CloseReason) {
        self.update(|state| {
            state.close.get_or_insert(reason);
        });
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        if !self.shared.closed.is_cancelled() {
            change(&mut self.state());
            self.shared.work.notify_one();
        }
    }

    /// Waits until `bytes` fit into the budget for large messages. A message larger than
    /// the budget takes all of it. Returns `None` if the connection's share of memory has no
    /// space in time.
    pub async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        Some(self.reserve_or(bytes, bytes).await?.0)
    }

    /// Reserves `bytes` if the memory is free now, and waits for `least` bytes otherwise.
    /// Returns whether all are reserved.
    pub async fn reserve_or(&self, bytes: usize, least: usize) -> Option<(Reservation, bool)> {
        let kib = bytes.div_ceil(1024).clamp(1, BULK_KIB) as u32;
        let bulk = Arc::clone(&self.shared.bulk);
        let Ok(space) = bulk.acquire_many_owned(kib).await else {
            unreachable!("the semaphore is never closed");
        };
        let mut is_whole = true;
        let memory = match &self.shared.memory {
            None => None,
            Some(share) => match share.try_charge(bytes) {
                Some(charge) => Some(charge),
                None => {
                    is_whole = least >= bytes;
                    Some(share.charge(least).await?)
                }
            },
        };
        let reservation = Reservation {
            _space: space,
            _memory: memory,
        };
        Some((reservation, is_whole))
    }

    /// Waits while too many messages are unwritten. Callers stop reading meanwhile, so that a
    /// peer that does not read its responses cannot send further requests.
    pub async fn wait_below_limit(&self) {
        loop {
            let few = {
                let mut state = self.state();
                state.messages.len() <= MAX_UNWRITTEN_MESSAGES
                    && state.message_bytes <= MAX_UNWRITTEN_BYTES
                    && (self.shared.memory.as_ref())
                        .is_none_or(|share| state.charge_messages(share))
            };
            if few {
                return;
            }
            tokio::select! {
                () = self.shared.drained.notified() => {}
                () = self.shared.closed.cancelled() => return,
            }
        }
    }

    /// Returns whether nothing can be sent any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Waits until nothing can be sent any more.
    pub(super) async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    /// Waits until there is something to write.
    pub(super) async fn wait_for_work(&self) {
        while self.state().is_empty() {
            self.shared.work.notified().await;
        }
    }

    /// Returns whether there is nothing to write.
    pub(super) fn is_idle(&self) -> bool {
        self.state().is_empty()
    }

    /// Returns the record of writes; `None` if the memory of the connection is not limited.
    pub(super) fn write_progress(&self) -> Option<&WriteProgress> {
        self.shared.memory.as_ref().map(MemoryShare::writes)
    }

    pub(super) fn messages_written(&self) {
        self.shared.drained.notify_one();
    }

    /// Discards the queue and wakes all waiters. Nothing is sent afterwards.
    pub fn end(&self) {
        self.shared.closed.cancel();
        let left = std::mem::take(&mut *self.state());
        drop(left);
        self.shared.drained.notify_waiters();
    }
}
