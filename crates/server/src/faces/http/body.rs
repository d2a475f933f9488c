//! A body on its way to the client.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use outpost_fetch::Body;
use outpost_protocol::{BodyFrame, HTTP_BODY_DELTA, HttpBodyDelta};
use outpost_rpc::{Feed, Frames, More, Outbox};
use tokio::sync::Notify;

use super::{
    backlog::{Backlog, Piece},
    exchanges::StreamName,
};
use crate::faces::feed::notify;

/// A piece is no larger than this, whatever a turn on the wire may carry.
const MOST_DELTA_BYTES: usize = 1024 * 1024;

/// A streamed body. It takes turns on the wire with everything else of its connection, and nothing
/// is read of it that there is no room for: a client that doesn't read holds back the host that
/// sends the body, and nobody else.
pub(super) struct BodyFeed {
    me: Weak<BodyFeed>,
    outbox: Outbox,
    frame: BodyFrame,
    state: Mutex<State>,
    /// Wakes the one task that reads: there is room again, or all of it is gone.
    room: Notify,
    /// Whether it is on the ready queue already.
    waiting: AtomicBool,
}

struct State {
    backlog: Backlog,
    /// Free for another request once the last piece is on its way.
    name: Option<StreamName>,
}

impl BodyFeed {
    pub(super) fn new(outbox: &Outbox, name: StreamName, window: usize, acked: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| BodyFeed {
            me: me.clone(),
            outbox: outbox.clone(),
            frame: BodyFrame::new(name.as_str()),
            state: Mutex::new(State {
                backlog: Backlog::new(window, acked),
                name: Some(name),
            }),
            room: Notify::new(),
            waiting: AtomicBool::new(false),
        })
    }

    /// Reads a body to its end, at the pace of the client.
    pub(super) async fn pump(&self, mut body: Body) {
        loop {
            self.wait_for_room().await;
            match body.chunk().await {
                Ok(Some(chunk)) => self.add(chunk),
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(error.to_string())),
            }
        }
    }

    /// The client has everything up to a number.
    pub(super) fn acknowledge(&self, seq: u64) {
        let ready = {
            let mut state = self.state();
            state.backlog.acknowledge(seq);
            state.backlog.is_ready()
        };
        if ready {
            self.wait_for_turn();
        }
    }

    /// Nothing more will be read.
    pub(super) fn end(&self, error: Option<String>) {
        self.state().backlog.end(error);
        self.wait_for_turn();
    }

    /// What is here goes nowhere, and nothing more will be read.
    pub(super) fn give_up(&self, reason: String) {
        self.state().backlog.give_up(reason);
        self.wait_for_turn();
    }

    /// Waits until the last piece was taken. Called by the one task that reads.
    pub(super) async fn wait_until_over(&self) {
        while !self.state().backlog.is_over() {
            self.room.notified().await;
        }
    }

    fn add(&self, chunk: Bytes) {
        self.state().backlog.add(chunk);
        self.wait_for_turn();
    }

    async fn wait_for_room(&self) {
        while !self.state().backlog.has_room() {
            self.room.notified().await;
        }
    }

    /// Asks for a turn on the wire.
    fn wait_for_turn(&self) {
        if !self.waiting.swap(true, Ordering::AcqRel)
            && let Some(me) = self.me.upgrade()
        {
            self.outbox.ready(me);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed for BodyFeed {
    fn fill(&self, frames: &mut Frames, budget: usize) -> More {
        // Before looking: what comes from now on must put the feed on the queue again.
        self.waiting.store(false, Ordering::Release);
        let mut state = self.state();
        match state.backlog.take(budget.min(MOST_DELTA_BYTES)) {
            None => {}
            Some(Piece::Delta(seq, bytes)) => {
                let len = self.frame.encoded_len(seq, bytes.len());
                self.frame.encode(frames.begin(len), seq, &bytes);
                frames.finish();
            }
            Some(Piece::Last(seq, error)) => {
                // Before the client can have it: it may use the name again at once.
                if let Some(name) = state.name.take() {
                    let delta = HttpBodyDelta {
                        request_id: name.as_str().into(),
                        seq,
                        delta_base64: b"".as_slice().into(),
                        done: true,
                        error,
                    };
                    notify(frames, HTTP_BODY_DELTA, &delta);
                }
            }
        }
        // Whoever sets the mark puts the feed on the queue.
        if state.backlog.is_ready() && !self.waiting.swap(true, Ordering::AcqRel) {
            More::Yes
        } else {
            More::No
        }
    }

    fn written(&self) {
        self.room.notify_one();
    }
}
