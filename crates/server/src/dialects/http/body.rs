//! Streams a body to the client.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use outpost_fetch::Body;
use outpost_protocol::{BodyFrame, HTTP_BODY_DELTA, HttpBodyDelta};
use outpost_rpc::{Feed, FrameBuffer, More, Outbox};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    backlog::{Backlog, Piece},
    exchanges::StreamId,
};
use crate::dialects::feed::notify;

/// The largest piece.
const MAX_DELTA_BYTES: usize = 1024 * 1024;

/// A streamed body. It shares the connection with the other feeds. It is read only while the backlog
/// has space, so a client that does not read slows down only the sender of this body.
pub(super) struct BodyFeed {
    this: Weak<BodyFeed>,
    outbox: Outbox,
    frame: BodyFrame,
    state: Mutex<State>,
    /// Wakes the reading task when there is space again, or when the last piece is sent.
    drained: Notify,
    /// Whether the feed is in the ready queue.
    queued: AtomicBool,
}

struct State {
    backlog: Backlog,
    /// Released when the last piece is sent.
    id: Option<StreamId>,
}

impl BodyFeed {
    pub(super) fn new(outbox: &Outbox, id: StreamId, window: usize, acked: bool) -> Arc<Self> {
        Arc::new_cyclic(|this| BodyFeed {
            this: this.clone(),
            outbox: outbox.clone(),
            frame: BodyFrame::new(id.as_str()),
            state: Mutex::new(State {
                backlog: Backlog::new(window, acked),
                id: Some(id),
            }),
            drained: Notify::new(),
            queued: AtomicBool::new(false),
        })
    }

    /// Reads a body to its end, as fast as the client consumes it.
    pub(super) async fn forward(&self, mut body: Body) {
        loop {
            self.wait_for_space().await;
            match body.chunk().await {
                Ok(Some(chunk)) => self.add(chunk),
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(error.to_string())),
            }
        }
    }

    /// Records that the client has received everything up to `seq`.
    pub(super) fn acknowledge(&self, seq: u64) {
        let ready = {
            let mut state = self.state.lock();
            state.backlog.acknowledge(seq);
            state.backlog.is_ready()
        };
        if ready {
            self.enqueue();
        }
    }

    /// Ends the body.
    pub(super) fn end(&self, error: Option<String>) {
        self.state.lock().backlog.end(error);
        self.enqueue();
    }

    /// Discards the buffered bytes and ends the body with an error.
    pub(super) fn abort(&self, reason: String) {
        self.state.lock().backlog.abort(reason);
        self.enqueue();
    }

    /// Waits until the last piece is sent. Only for the reading task.
    pub(super) async fn wait_until_over(&self) {
        while !self.state.lock().backlog.is_over() {
            self.drained.notified().await;
        }
    }

    fn add(&self, chunk: Bytes) {
        self.state.lock().backlog.add(chunk);
        self.enqueue();
    }

    async fn wait_for_space(&self) {
        while !self.state.lock().backlog.has_space() {
            self.drained.notified().await;
        }
    }

    /// Puts the feed into the ready queue.
    fn enqueue(&self) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.outbox.ready(this);
        }
    }
}

impl Feed for BodyFeed {
    fn fill(&self, frames: &mut FrameBuffer, budget: usize) -> More {
        // Reset before the backlog is read: later additions must queue the feed again.
        self.queued.store(false, Ordering::Release);
        let mut state = self.state.lock();
        match state.backlog.take(budget.min(MAX_DELTA_BYTES)) {
            None => {}
            Some(Piece::Delta(seq, bytes)) => {
                let len = self.frame.encoded_len(seq, bytes.len());
                self.frame.encode(frames.begin(len), seq, &bytes);
                frames.finish();
            }
            Some(Piece::Last(seq, error)) => {
                // Release the id before the message is sent: the client may reuse it at once.
                if let Some(id) = state.id.take() {
                    let delta = HttpBodyDelta {
                        request_id: id.as_str().into(),
                        seq,
                        delta_base64: b"".as_slice().into(),
                        done: true,
                        error,
                    };
                    notify(frames, HTTP_BODY_DELTA, &delta);
                }
            }
        }
        // The caller queues the feed again for `More::Yes`.
        if state.backlog.is_ready() && !self.queued.swap(true, Ordering::AcqRel) {
            More::Yes
        } else {
            More::No
        }
    }

    fn written(&self) {
        self.drained.notify_one();
    }
}
