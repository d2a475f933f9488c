//! Streams a body to the client.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use outpost_fetch::Body;
use outpost_protocol::{BodyEncoder, HTTP_BODY_DELTA, HttpBodyDelta};
use outpost_rpc::{Feed, FrameBuffer, More, Outbox};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    backlog::{Backlog, BodyChunk},
    request::Registration,
};
use crate::dialects::notifier::{Notifier, SharedNotificationOptions};

/// The largest piece.
const MAX_DELTA_BYTES: usize = 1024 * 1024;

/// A streamed body. It shares the connection with the other feeds. It is read only while the backlog
/// has space, so a client that does not read slows down only the sender of this body.
pub(super) struct BodyFeed {
    this: Weak<BodyFeed>,
    outbox: Outbox,
    notifications: SharedNotificationOptions,
    frame: BodyEncoder,
    state: Mutex<State>,
    /// Wakes the reading task when there is space again, or when the last piece is sent.
    drained: Notify,
    /// Whether the feed is in the ready queue.
    queued: AtomicBool,
}

/// The unsent part of a body.
struct State {
    backlog: Backlog,
    /// Released when the last piece is sent.
    registration: Option<Registration>,
}

impl BodyFeed {
    pub(super) fn new(
        outbox: &Outbox,
        notifications: &SharedNotificationOptions,
        registration: Registration,
        window: usize,
        acked: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| BodyFeed {
            this: this.clone(),
            outbox: outbox.clone(),
            notifications: Arc::clone(notifications),
            frame: BodyEncoder::new(&registration.id),
            state: Mutex::new(State {
                backlog: Backlog::new(window, acked),
                registration: Some(registration),
            }),
            drained: Notify::new(),
            queued: AtomicBool::new(false),
        })
    }

    /// Reads a body to its end, as fast as the client consumes it. Returns when the last
    /// piece is sent.
    pub(super) async fn forward(&self, mut body: Body) {
        loop {
            self.wait_until(Backlog::has_space).await;
            let end = match body.chunk().await {
                Ok(Some(chunk)) => {
                    self.update(|backlog| backlog.add(chunk));
                    continue;
                }
                Ok(None) => None,
                Err(error) => Some(error.to_string()),
            };
            self.update(|backlog| backlog.end(end));
            return self.wait_until(Backlog::is_over).await;
        }
    }

    /// Changes the backlog, and puts the feed into the ready queue if there is a piece to send.
    pub(super) fn update(&self, change: impl FnOnce(&mut Backlog)) {
        let ready = {
            let mut state = self.state.lock();
            change(&mut state.backlog);
            state.backlog.is_ready()
        };
        if ready {
            self.enqueue();
        }
    }

    /// Waits for a condition of the backlog. Only for the reading task.
    pub(super) async fn wait_until(&self, condition: fn(&Backlog) -> bool) {
        while !condition(&self.state.lock().backlog) {
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
        let mut notifier = Notifier::new(frames, &self.notifications);
        let mut state = self.state.lock();
        match state.backlog.take(budget.min(MAX_DELTA_BYTES)) {
            None => {}
            Some(BodyChunk::Delta(seq, bytes)) => {
                let len = self.frame.encoded_len(seq, bytes.len());
                notifier.encode(HTTP_BODY_DELTA, len, |out| {
                    self.frame.encode(out, seq, &bytes);
                });
            }
            Some(BodyChunk::Last(seq, error)) => {
                // Release the id before the message is sent: the client may reuse it at once.
                if let Some(request) = state.registration.take() {
                    let delta = HttpBodyDelta {
                        request_id: request.id.as_str().into(),
                        seq,
                        delta_base64: b"".as_slice().into(),
                        done: true,
                        error,
                    };
                    notifier.notify(HTTP_BODY_DELTA, &delta);
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
