//! The task that writes a connection.

use std::{future::poll_fn, io, sync::Arc, task::Poll, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::{CloseReason, Feed, More, Outbox, OutgoingMessage, Reservation, queue::State};
use crate::{FrameBuffer, Framing, WriteHalf, ws::Opcode};

/// Write sizes and timings of a connection.
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// Output bytes that one feed may add per turn.
    pub turn_bytes: usize,
    /// Size from which nothing more is added to a write. Bounds the delay of a message
    /// that is queued behind it.
    pub write_bytes: usize,
    /// Interval between pings.
    pub ping_interval: Duration,
    /// Time limit for writing the close frame and shutting the transport down.
    pub close_timeout: Duration,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            turn_bytes: 64 * 1024,
            write_bytes: 128 * 1024,
            ping_interval: Duration::from_secs(30),
            close_timeout: Duration::from_secs(1),
        }
    }
}

/// Size from which a message is written in fragments with pings in between, so that a peer
/// that takes minutes to read it is still seen to be alive.
const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// Size of a fragment.
const PART_BYTES: usize = 256 * 1024;

/// Buffer capacity that is kept while the connection is idle.
const MAX_IDLE_CAPACITY: usize = 4 * 1024;

/// Buffer capacity that is kept between writes. Larger messages have a reservation until they are written.
const MAX_CAPACITY: usize = 2 * PART_BYTES;

/// The error for a message whose rest could not be read.
fn incomplete() -> io::Error {
    io::Error::other("the rest of a message is not available")
}

/// Writes the outbox's messages and feeds until the connection is closed or fails.
///
/// Cancels the outbox's token when it returns.
pub async fn deliver(outbox: Outbox, mut io: WriteHalf, framing: Framing, options: WriterOptions) {
    let mut writer = Writer {
        outbox: outbox.clone(),
        frames: FrameBuffer::new(framing),
        filled: Vec::new(),
        large: None,
        options,
    };
    if let Err(error) = writer.run(&mut io).await {
        tracing::debug!(%error, "write failed");
    }
    outbox.end();
    // Dropped without notifying its feeds: their frames were not written.
    drop(writer);
    let _ = tokio::time::timeout(options.close_timeout, io.shutdown()).await;
}

/// Writes `bytes`, and records how the peer takes them.
async fn write(outbox: &Outbox, io: &mut WriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    let Some(progress) = outbox.write_progress() else {
        return io.write_all(bytes).await;
    };
    let _current = progress.begin();
    while !bytes.is_empty() {
        let written = io.write(bytes).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        progress.advance(written);
    }
    Ok(())
}

/// The state of a connection's writing task.
struct Writer {
    outbox: Outbox,
    frames: FrameBuffer,
    /// Feeds with frames in the current write.
    filled: Vec<Arc<dyn Feed>>,
    /// Message to write in fragments after the current write.
    large: Option<OutgoingMessage>,
    options: WriterOptions,
}

impl Writer {
    async fn run(&mut self, io: &mut WriteHalf) -> io::Result<()> {
        let mut pings = interval_at(
            Instant::now() + self.options.ping_interval,
            self.options.ping_interval,
        );
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // Pings first: under load there is always work, and a peer that only
                // reads proves that it is alive by answering pings. Close last: messages
                // queued before it are still written.
                biased;
                _ = pings.tick() => self.outbox.ping(),
                () = self.outbox.wait_for_work() => {}
                () = self.outbox.closed() => return Ok(()),
            }
            let mut reservations = Vec::new();
            let closing = self.gather(&mut reservations);
            if let Some(reason) = closing {
                let (code, text) = reason.code();
                let mut payload = code.to_be_bytes().to_vec();
                payload.extend_from_slice(text.as_bytes());
                self.frames.control(Opcode::Close, &payload);
                let write = async {
                    io.write_all(self.frames.as_bytes()).await?;
                    io.flush().await
                };
                return tokio::time::timeout(self.options.close_timeout, write)
                    .await
                    .unwrap_or(Ok(()));
            }
            if self.frames.is_empty() && self.large.is_none() {
                // A feed that added no frames has still advanced its cursor.
                self.notify_written();
                continue;
            }
            if !reservations.is_empty() {
                self.outbox.messages_written();
            }
            write(&self.outbox, io, self.frames.as_bytes()).await?;
            io.flush().await?;
            self.frames.clear();
            if self.frames.capacity() > MAX_CAPACITY {
                self.frames.release();
            }
            // Held until now, because the messages were in the buffer.
            drop(reservations);
            self.notify_written();
            if let Some(message) = self.large.take() {
                self.write_in_parts(io, message, &mut pings).await?;
            }
            if self.frames.capacity() > MAX_IDLE_CAPACITY && self.outbox.is_idle() {
                self.frames.release();
            }
        }
    }

    /// Writes one message in fragments.
    async fn write_in_parts(
        &mut self,
        io: &mut WriteHalf,
        message: OutgoingMessage,
        pings: &mut Interval,
    ) -> io::Result<()> {
        let OutgoingMessage {
            bytes,
            rest,
            reservation,
            ..
        } = message;
        // Held until the last fragment: nothing else bounds this memory.
        let mut held = Some(reservation);
        let mut first = true;
        let mut parts = bytes.chunks(PART_BYTES).peekable();
        while let Some(part) = parts.next() {
            let last = rest.is_none() && parts.peek().is_none();
            self.write_part(io, part, (first, last), pings, &mut held)
                .await?;
            first = false;
        }
        drop(bytes);
        if let Some(mut rest) = rest {
            loop {
                let block = rest.recv().await.ok_or_else(incomplete)?;
                self.write_part(io, &block.bytes, (first, block.last), pings, &mut held)
                    .await?;
                first = false;
                if block.last {
                    break;
                }
            }
        }
        io.flush().await
    }

    /// Writes one fragment, after control frames. Releases `held` with the last fragment.
    async fn write_part(
        &mut self,
        io: &mut WriteHalf,
        part: &[u8],
        (first, last): (bool, bool),
        pings: &mut Interval,
        held: &mut Option<Option<Reservation>>,
    ) -> io::Result<()> {
        if let Some(payload) = self.outbox.state().pong.take() {
            self.frames.control(Opcode::Pong, &payload);
        }
        if poll_fn(|cx| Poll::Ready(pings.poll_tick(cx).is_ready())).await {
            self.frames.control(Opcode::Ping, b"");
        }
        self.frames.part(part, first, last);
        if last {
            drop(held.take());
            self.outbox.messages_written();
        }
        write(&self.outbox, io, self.frames.as_bytes()).await?;
        self.frames.clear();
        Ok(())
    }

    /// Notifies the feeds that their frames were written.
    fn notify_written(&mut self) {
        for feed in self.filled.drain(..) {
            feed.written();
        }
    }

    /// Fills the next write: control frames, then messages, then one turn per feed. Moves
    /// the reservations of the messages to `reservations`.
    ///
    /// A feed is popped under the same lock under which the message queue was found empty,
    /// so a message sent before its feed was announced is also written before it.
    fn gather(&mut self, reservations: &mut Vec<Option<Reservation>>) -> Option<CloseReason> {
        let outbox = self.outbox.clone();
        let mut state = outbox.state();
        if let Some(payload) = state.pong.take() {
            self.frames.control(Opcode::Pong, &payload);
        }
        if std::mem::take(&mut state.ping) {
            self.frames.control(Opcode::Ping, b"");
        }
        self.take_messages(&mut state, reservations);
        if self.large.is_some() {
            return None;
        }
        if let Some(reason) = state.close.filter(|_| !state.has_messages()) {
            return Some(reason);
        }
        while self.large.is_none()
            && self.frames.len() < self.options.write_bytes
            && let Some(feed) = state.ready.pop_front()
        {
            drop(state);
            let more = feed.fill(&mut self.frames, self.options.turn_bytes);
            state = outbox.state();
            if more == More::Yes {
                state.ready.push_back(Arc::clone(&feed));
            }
            self.filled.push(feed);
            self.take_messages(&mut state, reservations);
        }
        None
    }

    /// Moves messages into the write while it has space, up to the next large message.
    fn take_messages(&mut self, state: &mut State, reservations: &mut Vec<Option<Reservation>>) {
        while self.frames.len() < self.options.write_bytes
            && let Some(message) = state.next_message()
        {
            if message.bytes.len() > LARGE_BYTES || message.rest.is_some() {
                self.large = Some(message);
                return;
            }
            self.frames.message(&message.bytes);
            reservations.push(message.reservation);
        }
    }
}
