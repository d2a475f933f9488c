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
use outpost_protocol::NoMemory;
use tokio::{
    sync::Notify,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::io::poll_read_buf;

use crate::{Framing, ReadHalf, lines::Lines, ws::Messages};

/// Read size when no large frame is expected.
const READ_BYTES: usize = 8 * 1024;
/// Read size within a large frame.
const LARGE_READ_BYTES: usize = 256 * 1024;

/// Size up to which a buffer grows without a check. Below it, reporting the failure
/// would need more memory than the message.
const UNCHECKED_BYTES: usize = 1024 * 1024;

/// A received message or control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A complete message.
    Message(Bytes),
    /// A message over the size limit, which was skipped.
    TooLong,
    /// A message that was skipped for lack of memory.
    NoMemory,
    /// A ping; its payload goes back in the pong.
    Ping(Bytes),
    /// A pong.
    Pong,
    /// A close frame, with its code if it has one.
    Close(Option<u16>),
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
}

#[derive(Debug)]
enum Assembler {
    Messages(Messages),
    Lines(Lines),
}

/// Outcome of one read.
enum Progress {
    /// Number of bytes read; 0 is the end of the input.
    Read(usize),
    /// The current message is being skipped for lack of memory.
    SkippedForMemory,
}

/// Counts successful reads, as evidence that the peer is alive. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub struct PeerActivity {
    shared: Arc<SharedCount>,
}

#[derive(Debug, Default)]
struct SharedCount {
    reads: AtomicU64,
    /// Notified after each read.
    changed: Notify,
}

impl PeerActivity {
    /// Returns the number of reads so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shared.reads.load(Ordering::Acquire)
    }

    /// Waits until the read count differs from `count`.
    pub async fn changed_from(&self, count: u64) {
        loop {
            // Created before the check, so that a read in between still wakes it.
            let changed = self.shared.changed.notified();
            if self.count() != count {
                return;
            }
            changed.await;
        }
    }

    fn increment(&self) {
        self.shared.reads.fetch_add(1, Ordering::AcqRel);
        self.shared.changed.notify_waiters();
    }
}

/// Reads messages from a transport. Its buffer is bounded by the message limit and grows
/// with received bytes, never with an announced length.
pub struct Inbound {
    io: ReadHalf,
    received: BytesMut,
    assembler: Assembler,
    silence: Option<Silence>,
    read_counter: PeerActivity,
    ended: bool,
}

/// Idle timeout of the reading half. The timer is reset when it fires, not at every read.
struct Silence {
    allowed: Duration,
    last: Instant,
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
            read_counter: PeerActivity::default(),
            ended: false,
        }
    }

    /// Returns the counter of successful reads.
    #[must_use]
    pub fn read_counter(&self) -> PeerActivity {
        self.read_counter.clone()
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
            if found.is_some() {
                return Ok(found);
            }
            if self.ended {
                return Ok(None);
            }
            match self.read_more().await? {
                Progress::Read(0) => self.ended = true,
                Progress::Read(_) | Progress::SkippedForMemory => {}
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
            // Free the memory of a large message.
            self.received = BytesMut::new();
        }
        if reserve(&mut self.received, wanted).is_err() {
            match &mut self.assembler {
                Assembler::Messages(messages) => messages.skip_for_memory(),
                Assembler::Lines(lines) => lines.skip_for_memory(),
            }
            return Ok(Progress::SkippedForMemory);
        }
        let Inbound {
            io,
            received,
            silence,
            read_counter,
            ..
        } = self;
        poll_fn(|cx| {
            // The buffer is freed again below if nothing can be read, so that an idle
            // connection holds no memory.
            received.reserve(wanted);
            if let Poll::Ready(read) = poll_read_buf(Pin::new(&mut *io), cx, received) {
                read_counter.increment();
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

/// Reserves `more` bytes after the contents of `buffer`. The contents are unchanged if
/// the allocation fails.
pub(crate) fn reserve(buffer: &mut BytesMut, more: usize) -> Result<(), NoMemory> {
    let needed = buffer.len() + more;
    if needed <= UNCHECKED_BYTES || buffer.capacity() >= needed {
        return Ok(());
    }
    // `BytesMut` has no fallible reserve; `Vec` has, and the conversions do not copy.
    let mut bytes = Vec::from(std::mem::take(buffer));
    // Amortized growth first, so that a message in many reads is moved only a few times.
    let reserved = bytes
        .try_reserve(more)
        .or_else(|_| bytes.try_reserve_exact(more));
    *buffer = BytesMut::from(Bytes::from(bytes));
    Ok(reserved?)
}

/// Appends `bytes`, or fails if there is no memory for them.
pub(crate) fn append(buffer: &mut BytesMut, bytes: &[u8]) -> Result<(), NoMemory> {
    reserve(buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_keeps_contents_and_prevents_moves() {
        let mut buffer = BytesMut::from(vec![7; UNCHECKED_BYTES].as_slice());
        reserve(&mut buffer, UNCHECKED_BYTES).expect("a megabyte is available");
        assert!(buffer.capacity() >= 2 * UNCHECKED_BYTES);
        assert!(buffer.iter().all(|byte| *byte == 7));
        let before = buffer.as_ptr();
        buffer.extend_from_slice(&[8; 1024]);
        assert_eq!(buffer.as_ptr(), before, "the capacity is really there");
    }

    #[test]
    fn failed_reserve_keeps_contents() {
        let mut buffer = BytesMut::from(&b"abc"[..]);
        assert_eq!(reserve(&mut buffer, 1 << 60), Err(NoMemory));
        assert_eq!(&buffer[..], b"abc");
    }
}
