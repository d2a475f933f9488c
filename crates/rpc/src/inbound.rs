//! The reading half of a connection.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    sync::Notify,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::io::poll_read_buf;

use crate::{Framing, ReadHalf, lines::Lines, room::make_room, ws::Messages};

/// How much is read at once when nothing says that more is coming.
const READ_BYTES: usize = 8 * 1024;
/// How much is read at once of a message that is known to be large.
const LARGE_READ_BYTES: usize = 256 * 1024;

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message, whole.
    Message(Bytes),
    /// A message over the limit; it was skipped.
    TooLong,
    /// A message that there was no memory for; it was skipped.
    NoMemory,
    /// A ping, to be answered with the same bytes.
    Ping(Bytes),
    /// The answer to a ping of ours.
    Pong,
    /// The peer says goodbye, with a code if it gives one.
    Close(Option<u16>),
}

/// Why nothing more comes in.
#[derive(Debug, thiserror::Error)]
pub enum InboundError {
    /// The transport failed.
    #[error("failed to read from the connection: {0}")]
    Io(#[from] io::Error),
    /// The peer broke the framing, and its bytes can't be made sense of.
    #[error("the peer broke the websocket protocol: {0}")]
    WebSocket(&'static str),
    /// Nothing at all came for too long.
    #[error("nothing received for {0:?}")]
    Silent(Duration),
}

#[derive(Debug)]
enum Assembler {
    Messages(Messages),
    Lines(Lines),
}

/// What came of asking for more.
enum Progress {
    /// So many bytes; none is the end of the input.
    Read(usize),
    /// There was no room for more of the message under way.
    GivenUp,
}

/// Counts the reads that brought something: a sign that the peer is alive.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    heart: Arc<Heart>,
}

#[derive(Debug, Default)]
struct Heart {
    beats: AtomicU64,
    /// Wakes whoever waits for the next beat.
    beat: Notify,
}

impl Pulse {
    /// How many there were.
    #[must_use]
    pub fn beats(&self) -> u64 {
        self.heart.beats.load(Ordering::Acquire)
    }

    /// Waits until there were others than so many.
    pub async fn beyond(&self, beats: u64) {
        loop {
            // Woken by every beat from here on, also before it is polled.
            let beat = self.heart.beat.notified();
            if self.beats() != beats {
                return;
            }
            beat.await;
        }
    }

    fn beat(&self) {
        self.heart.beats.fetch_add(1, Ordering::AcqRel);
        self.heart.beat.notify_waiters();
    }
}

/// Reads messages from a transport. What it holds is bounded by the message
/// limit, and grows with what was received, never with what was announced.
pub struct Inbound {
    io: ReadHalf,
    received: BytesMut,
    assembler: Assembler,
    silence: Option<Silence>,
    pulse: Pulse,
    ended: bool,
}

/// Watches that something comes in now and then. The timer is set anew only
/// when it fires, not at every read.
struct Silence {
    allowed: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Inbound {
    /// Reads `io` in the given framing. After `silence` with no byte received
    /// the connection counts as lost.
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
            pulse: Pulse::default(),
            ended: false,
        }
    }

    /// What shows whether the peer is alive.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Hands over bytes that were read before, together with the handshake.
    pub fn already_received(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next thing that came in; `None` at the end of the input.
    ///
    /// Cancel-safe: what was received stays for the next call.
    pub async fn next(&mut self) -> Result<Option<Received>, InboundError> {
        loop {
            let found = match &mut self.assembler {
                Assembler::Messages(messages) => messages.next(&mut self.received)?,
                Assembler::Lines(lines) => match lines.next(&mut self.received) {
                    None if self.ended => lines.last(&mut self.received),
                    found => found,
                },
            };
            if found.is_some() {
                return Ok(found);
            }
            if self.ended {
                return Ok(None);
            }
            match self.read_more().await? {
                Progress::Read(0) => self.ended = true,
                Progress::Read(_) | Progress::GivenUp => {}
            }
        }
    }

    async fn read_more(&mut self) -> Result<Progress, InboundError> {
        let wanted = match &self.assembler {
            Assembler::Messages(messages) => messages.wants(self.received.len()),
            Assembler::Lines(_) => self.received.len(),
        };
        let wanted = wanted.clamp(READ_BYTES, LARGE_READ_BYTES);
        if self.received.is_empty() && self.received.capacity() > LARGE_READ_BYTES {
            // The memory of a large message isn't kept for small ones.
            self.received = BytesMut::new();
        }
        if make_room(&mut self.received, wanted).is_err() {
            // It costs that message alone, which is thrown away as it comes.
            match &mut self.assembler {
                Assembler::Messages(messages) => messages.give_up(),
                Assembler::Lines(lines) => lines.give_up(),
            }
            return Ok(Progress::GivenUp);
        }
        let Inbound {
            io,
            received,
            silence,
            pulse,
            ..
        } = self;
        poll_fn(|cx| {
            // The buffer exists only while there is something to read into it;
            // a quiet connection holds none.
            received.reserve(wanted);
            if let Poll::Ready(read) = poll_read_buf(Pin::new(&mut *io), cx, received) {
                pulse.beat();
                if let Some(silence) = silence {
                    silence.last = Instant::now();
                }
                return Poll::Ready(read.map(Progress::Read).map_err(InboundError::Io));
            }
            if received.is_empty() {
                *received = BytesMut::new();
            }
            let Some(silence) = silence else {
                return Poll::Pending;
            };
            while silence.timer.as_mut().poll(cx).is_ready() {
                let deadline = silence.last + silence.allowed;
                if deadline <= Instant::now() {
                    return Poll::Ready(Err(InboundError::Silent(silence.allowed)));
                }
                silence.timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}
