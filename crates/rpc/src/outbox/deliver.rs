//! The task that writes.

use std::{future::poll_fn, io, sync::Arc, task::Poll, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::{Answer, CloseReason, Feed, More, Outbox, Reservation, queue::State};
use crate::{Frames, Framing, WriteHalf, ws::Opcode};

/// How the writer shares out the wire.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// How many bytes of output one process may send before it is another's
    /// turn.
    pub turn_bytes: usize,
    /// How large a write grows before it is made; what comes after it waits at
    /// most as long as this takes to send.
    pub write_bytes: usize,
    /// How often the peer is pinged.
    pub ping_every: Duration,
    /// How long a farewell may take: a peer that doesn't read misses it.
    pub close_within: Duration,
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery {
            turn_bytes: 64 * 1024,
            write_bytes: 128 * 1024,
            ping_every: Duration::from_secs(30),
            close_within: Duration::from_secs(1),
        }
    }
}

/// An answer larger than this is never in the buffer as a whole: it goes out in
/// parts, with pings between them, so that who takes minutes to read it is still
/// known to be alive.
const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// How large those parts are.
const PART_BYTES: usize = 256 * 1024;

/// A buffer larger than this isn't kept while the connection is quiet.
const KEEP_BYTES: usize = 4 * 1024;

/// Writes what the outbox holds until the connection is closed or fails.
///
/// When this ends, nothing can be sent any more, and the outbox's token is
/// cancelled.
pub async fn deliver(outbox: Outbox, mut io: WriteHalf, framing: Framing, delivery: Delivery) {
    let mut writer = Writer {
        outbox: outbox.clone(),
        frames: Frames::new(framing),
        filled: Vec::new(),
        large: None,
        delivery,
    };
    if let Err(error) = writer.run(&mut io).await {
        tracing::debug!(%error, "connection can't be written to");
    }
    outbox.end();
    // Feeds that were filled but not written must not count as written.
    drop(writer);
    let _ = tokio::time::timeout(delivery.close_within, io.shutdown()).await;
}

struct Writer {
    outbox: Outbox,
    frames: Frames,
    /// Whose frames are in the write under way.
    filled: Vec<Arc<dyn Feed>>,
    /// The answer that goes out behind that write, in parts.
    large: Option<Answer>,
    delivery: Delivery,
}

impl Writer {
    async fn run(&mut self, io: &mut WriteHalf) -> io::Result<()> {
        let mut pings = interval_at(
            Instant::now() + self.delivery.ping_every,
            self.delivery.ping_every,
        );
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // In this order: in a flood there is always news, and a peer that
                // only reads shows that it is alive by answering pings.
                // What was left to say when it was closed is still said.
                biased;
                _ = pings.tick() => self.outbox.ping(),
                () = self.outbox.news() => {}
                () = self.outbox.closed() => return Ok(()),
            }
            let mut freed = Vec::new();
            let closing = self.gather(&mut freed);
            if let Some(reason) = closing {
                let (code, words) = reason.code();
                let mut payload = code.to_be_bytes().to_vec();
                payload.extend_from_slice(words.as_bytes());
                self.frames.control(Opcode::Close, &payload);
                let write = async {
                    io.write_all(self.frames.as_bytes()).await?;
                    io.flush().await
                };
                return tokio::time::timeout(self.delivery.close_within, write)
                    .await
                    .unwrap_or(Ok(()));
            }
            if self.frames.is_empty() && self.large.is_none() {
                // Who had nothing to say of what happened has seen it all the same.
                self.tell_filled();
                continue;
            }
            // The answers are in the buffer now, which is bounded by itself.
            if !freed.is_empty() {
                drop(freed);
                self.outbox.answers_written();
            }
            io.write_all(self.frames.as_bytes()).await?;
            io.flush().await?;
            self.frames.clear();
            self.tell_filled();
            if let Some(answer) = self.large.take() {
                self.write_in_parts(io, answer, &mut pings).await?;
            }
            if self.frames.capacity() > KEEP_BYTES && self.outbox.is_quiet() {
                self.frames.release();
            }
        }
    }

    /// Writes one answer, part by part.
    async fn write_in_parts(
        &mut self,
        io: &mut WriteHalf,
        answer: Answer,
        pings: &mut Interval,
    ) -> io::Result<()> {
        // Held all the while: the message is memory that nothing else bounds.
        let mut held = answer.reservation;
        let mut parts = answer.message.chunks(PART_BYTES).peekable();
        let mut first = true;
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            if let Some(payload) = self.outbox.state().pong.take() {
                self.frames.control(Opcode::Pong, &payload);
            }
            if poll_fn(|cx| Poll::Ready(pings.poll_tick(cx).is_ready())).await {
                self.frames.control(Opcode::Ping, b"");
            }
            self.frames.part(part, first, last);
            first = false;
            if last {
                drop(held.take());
                self.outbox.answers_written();
            }
            io.write_all(self.frames.as_bytes()).await?;
            self.frames.clear();
        }
        io.flush().await
    }

    /// Whatever was filled has left the buffer.
    fn tell_filled(&mut self) {
        for feed in self.filled.drain(..) {
            feed.written();
        }
    }

    /// Fills the next write: control, then answers, then turns of the feeds.
    /// What the answers held goes to `freed`.
    ///
    /// A feed is taken under the lock under which the answers were found to be
    /// none: whoever answers and then announces a feed is heard in that order.
    fn gather(&mut self, freed: &mut Vec<Option<Reservation>>) -> Option<CloseReason> {
        let outbox = self.outbox.clone();
        let mut state = outbox.state();
        if let Some(payload) = state.pong.take() {
            self.frames.control(Opcode::Pong, &payload);
        }
        if std::mem::take(&mut state.ping) {
            self.frames.control(Opcode::Ping, b"");
        }
        self.take_answers(&mut state, freed);
        if self.large.is_some() {
            return None;
        }
        if let Some(reason) = state.close.filter(|_| !state.has_answers()) {
            return Some(reason);
        }
        while self.large.is_none()
            && self.frames.len() < self.delivery.write_bytes
            && let Some(feed) = state.ready.pop_front()
        {
            drop(state);
            let more = feed.fill(&mut self.frames, self.delivery.turn_bytes);
            state = outbox.state();
            if more == More::Yes {
                state.ready.push_back(Arc::clone(&feed));
            }
            self.filled.push(feed);
            self.take_answers(&mut state, freed);
        }
        None
    }

    /// Moves answers into the write while it has room, up to a large one.
    fn take_answers(&mut self, state: &mut State, freed: &mut Vec<Option<Reservation>>) {
        while self.frames.len() < self.delivery.write_bytes
            && let Some(answer) = state.next_answer()
        {
            if answer.message.len() > LARGE_BYTES {
                self.large = Some(answer);
                return;
            }
            self.frames.message(&answer.message);
            freed.push(answer.reservation);
        }
    }
}
