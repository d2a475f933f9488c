//! What is to be sent on a connection, and in which order.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Feed;
use crate::Ticket;

/// How many bytes of large answers may wait to be written, in KiB.
const BULK_KIB: usize = 4 * 1024;
/// A connection with more unwritten answers than this is not read from,
const MANY_ANSWERS: usize = 4096;
/// nor one with more bytes of them: ids and names come back as they were sent,
/// and may be megabytes.
const MANY_BYTES: usize = 2 * 1024 * 1024;

/// Why we close a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer said goodbye.
    Normal,
    /// The server is ending.
    GoingAway,
    /// The peer broke the protocol.
    ProtocolError,
    /// Another connection has taken the session over.
    TakenOver,
}

impl CloseReason {
    /// The code and the words of the close frame.
    #[must_use]
    pub fn code(self) -> (u16, &'static str) {
        match self {
            CloseReason::Normal => (1000, ""),
            CloseReason::GoingAway => (1001, "server is shutting down"),
            CloseReason::ProtocolError => (1002, "websocket protocol error"),
            CloseReason::TakenOver => (4001, "session was taken over by another connection"),
        }
    }
}

/// A message that answers something, with what it holds until it is queued and
/// until it is on its way.
#[derive(Debug)]
pub struct Answer {
    /// The encoded message, without framing.
    pub message: Vec<u8>,
    /// The request's place among those under way, which is free once the answer
    /// is queued: how many answers may wait has a bound of its own.
    pub ticket: Option<Ticket>,
    /// The room that was reserved for a large answer, until it is on its way.
    pub reservation: Option<Reservation>,
}

impl Answer {
    /// A message that holds no place.
    #[must_use]
    pub fn new(message: Vec<u8>) -> Self {
        Answer {
            message,
            ticket: None,
            reservation: None,
        }
    }
}

/// Room for a large answer; dropping it gives the room back.
#[derive(Debug)]
pub struct Reservation {
    _room: OwnedSemaphorePermit,
}

/// The sending side of a connection, for everybody who has something to say.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the writer.
    news: Notify,
    /// Wakes the reader that waits for answers to be written.
    drained: Notify,
    bulk: Arc<Semaphore>,
    /// Cancelled when nothing can be sent any more; the connection's tasks end
    /// with it.
    closed: CancellationToken,
}

#[derive(Default)]
pub(super) struct State {
    /// Answers, in the order they were given.
    answers: VecDeque<Answer>,
    /// How many bytes they have.
    answer_bytes: usize,
    /// Feeds that have something, in the order of their turns.
    pub(super) ready: VecDeque<Arc<dyn Feed>>,
    /// The bytes of the last ping that was not answered yet; only the last one
    /// needs an answer.
    pub(super) pong: Option<Bytes>,
    /// A ping is to be sent.
    pub(super) ping: bool,
    /// The last thing to send.
    pub(super) close: Option<CloseReason>,
}

impl State {
    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        self.answer_bytes -= answer.message.len();
        Some(answer)
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.answers.is_empty()
            && self.ready.is_empty()
            && self.pong.is_none()
            && !self.ping
            && self.close.is_none()
    }
}

impl Outbox {
    /// An empty outbox. `closed` is cancelled when the writer ends.
    #[must_use]
    pub fn new(closed: CancellationToken) -> Self {
        Outbox {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                news: Notify::new(),
                drained: Notify::new(),
                bulk: Arc::new(Semaphore::new(BULK_KIB)),
                closed,
            }),
        }
    }

    /// Sends an answer; before any output that isn't on its way yet.
    pub fn answer(&self, mut answer: Answer) {
        self.put(|state| {
            // In one step with the queueing. Who has the answer and sends its
            // next request at once must find a free place; and who waits for all
            // requests to be answered must find the answers queued.
            drop(answer.ticket.take());
            state.answer_bytes += answer.message.len();
            state.answers.push_back(answer);
        });
    }

    /// Gives a feed a turn. It must not be waiting for one already.
    pub fn ready(&self, feed: Arc<dyn Feed>) {
        self.put(|state| state.ready.push_back(feed));
    }

    /// Answers a ping.
    pub fn pong(&self, payload: Bytes) {
        self.put(|state| state.pong = Some(payload));
    }

    /// Asks the peer for a sign of life.
    pub fn ping(&self) {
        self.put(|state| state.ping = true);
    }

    /// Ends the connection once the answers so far are written; the first
    /// reason counts.
    pub fn close(&self, reason: CloseReason) {
        self.put(|state| {
            state.close.get_or_insert(reason);
        });
    }

    fn put(&self, change: impl FnOnce(&mut State)) {
        if !self.shared.closed.is_cancelled() {
            change(&mut self.state());
            self.shared.news.notify_one();
        }
    }

    /// Waits for room to hold an answer of so many bytes. An answer larger
    /// than all the room there is gets all of it.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        let kib = bytes.div_ceil(1024).clamp(1, BULK_KIB) as u32;
        let bulk = Arc::clone(&self.shared.bulk);
        match bulk.acquire_many_owned(kib).await {
            Ok(room) => Reservation { _room: room },
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    /// Waits while the peer leaves too many answers unread: who doesn't listen
    /// isn't listened to.
    pub async fn listening(&self) {
        loop {
            let few = {
                let state = self.state();
                state.answers.len() <= MANY_ANSWERS && state.answer_bytes <= MANY_BYTES
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

    /// Whether nothing can be sent any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Waits until nothing can be sent any more.
    pub(super) async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to send.
    pub(super) async fn news(&self) {
        while self.state().is_empty() {
            self.shared.news.notified().await;
        }
    }

    /// Whether there is nothing to send right now.
    pub(super) fn is_quiet(&self) -> bool {
        self.state().is_empty()
    }

    pub(super) fn answers_written(&self) {
        self.shared.drained.notify_one();
    }

    /// Nothing more will be sent: frees what waits, and those who wait.
    pub fn end(&self) {
        self.shared.closed.cancel();
        let left = std::mem::take(&mut *self.state());
        drop(left);
        self.shared.drained.notify_waiters();
    }
}
