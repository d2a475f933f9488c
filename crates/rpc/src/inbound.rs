//! The reading half of a connection.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{BufMut as _, Bytes, BytesMut};
use outpost_protocol::RequestId;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::io::poll_read_buf;

use crate::{
    Framing, MemoryCharge, MemoryShare, PeerActivity, ReadHalf, SkipReason, lines::Lines,
    receive_buffer::reserve, ws::Messages,
};

/// Read size when no large frame is expected.
const READ_BYTES: usize = 8 * 1024;
/// Memory of a large message that has just begun. With what is decoded from it, it is within the
/// bytes of a connection that are not counted, so that announcing a message costs nothing.
const FIRST_STEP_BYTES: usize = 64 * 1024;
/// Read size within a large frame.
const LARGE_READ_BYTES: usize = 256 * 1024;

/// An incomplete message progresses if this many bytes arrive within its timeout.
const PROGRESS_BYTES: usize = 64 * 1024;

/// A received message or control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A complete message.
    Message(Bytes),
    /// A message that was skipped, and its id if it is a request.
    Skipped(SkipReason, Option<RequestId>),
    /// A ping; its payload goes back in the pong.
    Ping(Bytes),
    /// A pong.
    Pong,
    /// A close frame, with its code if it has one, and the reason text.
    Close(Option<u16>, Bytes),
}

/// Error that ends the reading half.
#[derive(Debug, thiserror::Error)]
pub enum InboundError {
    /// The transport failed.
    #[error("failed to read from the connection: {0}")]
    Io(#[from] io::Error),
    /// The peer violated the WebSocket framing.
    #[error("the peer broke the websocket protocol: {0}")]
    WebSocket(&'static str),
    /// No byte was received for too long.
    #[error("nothing received for {0:?}")]
    Silent(Duration),
    /// A message has begun and does not arrive.
    #[error("less than {PROGRESS_BYTES} bytes of an incomplete message received in {0:?}")]
    Stalled(Duration),
}

/// The framing of received bytes: WebSocket messages or lines.
#[derive(Debug)]
enum Assembler {
    Messages(Messages),
    Lines(Lines),
}

impl Assembler {
    /// Returns the memory of the incomplete message after a read of `read` bytes. Doubling avoids
    /// a charge for every read. The announced size does not count: a slow peer would hold it.
    fn message_bytes(&self, received: usize, read: usize) -> usize {
        match self {
            Assembler::Messages(messages) => {
                messages.message_bytes((received + read).next_power_of_two())
            }
            Assembler::Lines(_) => received.next_power_of_two(),
        }
    }

    fn is_incomplete(&self, received: usize) -> bool {
        received > 0
            || match self {
                Assembler::Messages(messages) => messages.is_incomplete(),
                Assembler::Lines(lines) => lines.is_skipping(),
            }
    }

    /// Discards the rest of the incomplete message.
    fn skip(&mut self, reason: SkipReason) {
        match self {
            Assembler::Messages(messages) => messages.skip_because(reason),
            Assembler::Lines(lines) => lines.skip_because(reason),
        }
    }
}

/// Returns the memory of a message: its bytes, and what is decoded from them.
fn message_cost(bytes: usize) -> usize {
    match bytes {
        0..=READ_BYTES => 0,
        _ => bytes + bytes / 4 * 3,
    }
}

/// Outcome of one read.
enum Progress {
    /// Number of bytes read; 0 is the end of the input.
    Read(usize),
    /// The current message is being skipped.
    Skipped,
}

/// Reads messages from a transport. Its buffer is bounded by the message limit and grows
/// with received bytes, never with an announced length.
pub struct Inbound {
    io: ReadHalf,
    received: BytesMut,
    assembler: Assembler,
    silence: Option<Silence>,
    stall: Option<Stall>,
    /// Memory of the incomplete message; `None` if it is not limited.
    charge: Option<MemoryCharge>,
    read_counter: PeerActivity,
    ended: bool,
}

/// Idle timeout of the reading half. The timer is reset when it fires, not at every read.
struct Silence {
    allowed: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

/// Timeout of an incomplete message. Only time in which the connection is read counts.
struct Stall {
    allowed: Duration,
    /// The last progress; `None` while no message is incomplete.
    since: Option<Instant>,
    /// Bytes received since then.
    bytes: usize,
    timer: Pin<Box<Sleep>>,
}

impl Inbound {
    /// Creates a reader of `io`. It fails after `silence` without a received byte.
    #[must_use]
    pub fn new(io: ReadHalf, framing: Framing, limit: usize, silence: Option<Duration>) -> Self {
        Inbound {
            io,
            received: BytesMut::new(),
            assembler: match framing {
                Framing::WebSocket(role) => Assembler::Messages(Messages::new(role, limit)),
                Framing::Lines => Assembler::Lines(Lines::new(limit)),
            },
            silence: silence.map(|allowed| Silence {
                allowed,
                last: Instant::now(),
                timer: Box::pin(sleep_until(Instant::now() + allowed)),
            }),
            stall: None,
            charge: None,
            read_counter: PeerActivity::default(),
            ended: false,
        }
    }

    /// Takes the memory of incomplete messages from `share`. A message that gets none in time
    /// is skipped.
    #[must_use]
    pub fn with_memory(mut self, share: &MemoryShare) -> Self {
        self.charge = Some(share.empty_charge());
        self
    }

    /// Fails if a message has begun and less than 64 KiB of it arrive within `allowed`.
    #[must_use]
    pub fn with_message_timeout(mut self, allowed: Duration) -> Self {
        self.stall = Some(Stall {
            allowed,
            since: None,
            bytes: 0,
            timer: Box::pin(sleep_until(Instant::now() + allowed)),
        });
        self
    }

    /// Raises the size limit of later messages.
    pub fn raise_limit(&mut self, limit: usize) {
        match &mut self.assembler {
            Assembler::Messages(messages) => messages.raise_limit(limit),
            Assembler::Lines(lines) => lines.raise_limit(limit),
        }
    }

    /// Takes the memory charge of the message that was just returned. A small message has
    /// none.
    pub fn take_charge(&mut self) -> Option<MemoryCharge> {
        let charge = self.charge.as_mut().map(|charge| charge.split_off(0));
        charge.filter(|charge| charge.bytes() > 0)
    }

    /// Returns the counter of successful reads.
    #[must_use]
    pub fn read_counter(&self) -> PeerActivity {
        self.read_counter.clone()
    }

    /// Starts the times of the silence timeout and of an incomplete message again.
    pub fn restart_timeouts(&mut self) {
        self.message_ended();
        if let Some(silence) = &mut self.silence {
            silence.last = Instant::now();
            let deadline = silence.last + silence.allowed;
            silence.timer.as_mut().reset(deadline);
        }
    }

    /// Adds bytes that were read together with the opening handshake.
    pub fn already_received(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Returns the next message or control frame; `None` at the end of the input.
    ///
    /// Cancel safe: received bytes stay buffered for the next call.
    pub async fn next(&mut self) -> Result<Option<Received>, InboundError> {
        loop {
            let found = match &mut self.assembler {
                Assembler::Messages(messages) => messages.next(&mut self.received)?,
                Assembler::Lines(lines) => match lines.next(&mut self.received) {
                    None if self.ended => lines.last(&mut self.received),
                    found => found,
                },
            };
            if let Some(found) = found {
                // Control frames may come within a message.
                if !matches!(found, Received::Ping(_) | Received::Pong) {
                    self.message_ended();
                }
                return Ok(Some(found));
            }
            if self.ended {
                return Ok(None);
            }
            let read = self.next_read_bytes();
            if !self.charge_message(read).await {
                self.skip(SkipReason::Overloaded);
                continue;
            }
            match self.read_more(read).await? {
                Progress::Read(0) => self.ended = true,
                Progress::Read(_) | Progress::Skipped => {}
            }
        }
    }

    /// Restarts the timeout of an incomplete message.
    fn message_ended(&mut self) {
        if let Some(stall) = &mut self.stall {
            stall.since = None;
        }
    }

    /// Returns the size of the next read.
    fn next_read_bytes(&self) -> usize {
        let received = self.received.len();
        let wanted = match &self.assembler {
            Assembler::Messages(messages) => messages.wants(received),
            Assembler::Lines(_) => received,
        };
        // Up to the next step of the charge.
        let step = (received + READ_BYTES).next_power_of_two();
        let step = step.max(FIRST_STEP_BYTES) - received;
        wanted.clamp(READ_BYTES, step.min(LARGE_READ_BYTES))
    }

    /// Waits for the memory of the incomplete message after a read of `read` bytes. Returns false
    /// if it gets none.
    async fn charge_message(&mut self, read: usize) -> bool {
        let bytes = self.assembler.message_bytes(self.received.len(), read);
        let Some(charge) = &mut self.charge else {
            return true;
        };
        let cost = message_cost(bytes);
        if cost == 0 {
            charge.shrink_to(0);
        }
        let missing = cost.saturating_sub(charge.bytes());
        if missing == 0 || charge.try_grow(missing) {
            return true;
        }
        let paused = self.read_counter.pause();
        let charged = charge.grow(missing).await;
        drop(paused);
        // The connection was not read meanwhile.
        self.message_ended();
        charged
    }

    fn skip(&mut self, reason: SkipReason) {
        self.assembler.skip(reason);
        if let Some(charge) = &mut self.charge {
            charge.shrink_to(0);
        }
    }

    async fn read_more(&mut self, wanted: usize) -> Result<Progress, InboundError> {
        if self.received.is_empty() && self.received.capacity() > LARGE_READ_BYTES {
            // Free the memory of a large message.
            self.received = BytesMut::new();
        }
        if reserve(&mut self.received, wanted).is_err() {
            self.skip(SkipReason::NoMemory);
            return Ok(Progress::Skipped);
        }
        if let Some(stall) = &mut self.stall
            && stall.since.is_none()
            && self.assembler.is_incomplete(self.received.len())
        {
            (stall.since, stall.bytes) = (Some(Instant::now()), 0);
        }
        let Inbound {
            io,
            received,
            silence,
            stall,
            read_counter,
            ..
        } = self;
        poll_fn(|cx| {
            // The buffer is freed again below if nothing can be read, so that an idle
            // connection holds no memory.
            received.reserve(wanted);
            let read = poll_read_buf(Pin::new(&mut *io), cx, &mut (&mut *received).limit(wanted));
            if let Poll::Ready(read) = read {
                read_counter.increment();
                if let Some(silence) = silence {
                    silence.last = Instant::now();
                }
                if let (Some(stall), Ok(read)) = (&mut *stall, &read) {
                    stall.bytes += read;
                    if stall.bytes >= PROGRESS_BYTES {
                        stall.since = None;
                    }
                }
                return Poll::Ready(read.map(Progress::Read).map_err(InboundError::Io));
            }
            if received.is_empty() {
                *received = BytesMut::new();
            }
            if let Some(Silence {
                allowed,
                last,
                timer,
            }) = silence
                && expired(timer, *last + *allowed, cx)
            {
                return Poll::Ready(Err(InboundError::Silent(*allowed)));
            }
            if let Some(Stall {
                allowed,
                since: Some(since),
                timer,
                ..
            }) = stall
                && expired(timer, *since + *allowed, cx)
            {
                return Poll::Ready(Err(InboundError::Stalled(*allowed)));
            }
            Poll::Pending
        })
        .await
    }
}

/// Returns whether the deadline has passed. The task is woken then otherwise.
fn expired(timer: &mut Pin<Box<Sleep>>, deadline: Instant, cx: &mut Context<'_>) -> bool {
    while timer.as_mut().poll(cx).is_ready() {
        if deadline <= Instant::now() {
            return true;
        }
        timer.as_mut().reset(deadline);
    }
    false
}
