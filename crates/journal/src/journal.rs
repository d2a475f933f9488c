//! The bounded event log of one process.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::{Chunk, Event, Exit, Limits, OutputEnd, OwnerCursor, Page, Seq, Stream};

/// A retained output event with its offset in the stream of all bytes, so that
/// the number of bytes after a cursor needs no summation.
#[derive(Debug)]
struct Kept {
    chunk: Chunk,
    /// All output bytes up to and including this chunk.
    end: u64,
}

/// The log of one process.
#[derive(Debug)]
pub struct Journal {
    limits: Limits,
    /// Retained output. Exit and close are stored separately, because they are
    /// never evicted.
    kept: VecDeque<Kept>,
    /// The number of the next event.
    next: Seq,
    /// The number of output bytes ever appended.
    total: u64,
    exit: Option<(Seq, Exit)>,
    closed: Option<(Seq, OutputEnd)>,
    owner: OwnerCursor,
    /// Suspends eviction, while a returning owner may read what it missed.
    held: bool,
}

impl Journal {
    /// Creates an empty log without an owner.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Journal {
            limits,
            kept: VecDeque::new(),
            next: Seq(1),
            total: 0,
            exit: None,
            closed: None,
            owner: OwnerCursor::Absent { cursor: Seq::START },
            held: false,
        }
    }

    /// Creates a log whose events up to `seen` are recorded elsewhere. The next
    /// event gets the number after it.
    #[must_use]
    pub fn starting_after(limits: Limits, seen: Seq) -> Self {
        Journal {
            next: seen.next(),
            owner: OwnerCursor::Absent { cursor: seen },
            ..Journal::new(limits)
        }
    }

    /// Appends output. An empty chunk is ignored. Must not be called after the
    /// close.
    pub fn output(&mut self, stream: Stream, bytes: Bytes) {
        debug_assert!(self.closed.is_none(), "output after the close");
        if bytes.is_empty() || self.closed.is_some() {
            return;
        }
        self.total += bytes.len() as u64;
        let seq = self.next_number();
        self.kept.push_back(Kept {
            chunk: Chunk { seq, stream, bytes },
            end: self.total,
        });
        self.evict();
    }

    /// Skips an event number that the server used for a message that is not an event. Only for a
    /// client's copy of a log.
    pub fn skip(&mut self) {
        self.next_number();
    }

    /// Appends the exit. Further calls are ignored.
    pub fn exited(&mut self, exit: Exit) {
        debug_assert!(self.closed.is_none(), "exit after the close");
        if self.exit.is_none() && self.closed.is_none() {
            let seq = self.next_number();
            self.exit = Some((seq, exit));
        }
    }

    /// Records an exit among the events before [`Journal::starting_after`], as
    /// the last of them.
    pub fn had_exited(&mut self, exit: Exit) {
        if self.exit.is_none() {
            self.exit = Some((self.next.previous(), exit));
        }
    }

    /// Appends `closed`, which is always the last event. Further calls are ignored.
    pub fn close(&mut self, end: OutputEnd) {
        debug_assert!(self.exit.is_some(), "close before the exit");
        if self.closed.is_none() {
            let seq = self.next_number();
            self.closed = Some((seq, end));
        }
    }

    fn next_number(&mut self) -> Seq {
        let seq = self.next;
        self.next = seq.next();
        seq
    }

    /// The number of the next event.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// The exit status, once it is known.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.exit.map(|(_, exit)| exit)
    }

    /// Whether `closed` was appended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The number of output bytes ever appended.
    #[must_use]
    pub fn bytes_out(&self) -> u64 {
        self.total
    }

    /// The number of retained output bytes.
    #[must_use]
    pub fn retained_bytes(&self) -> u64 {
        self.kept
            .front()
            .map_or(0, |oldest| self.total - start_of(oldest))
    }

    /// Whether there are events after this cursor.
    #[must_use]
    pub fn has_after(&self, cursor: Seq) -> bool {
        self.next > cursor.next()
    }

    /// The events after a cursor, in order. If output was evicted, the first
    /// number is not the one after the cursor.
    pub fn events_after(&self, cursor: Seq) -> impl Iterator<Item = Event> + '_ {
        let mut chunks = self.kept.range(self.first_after(cursor)..).peekable();
        let mut exit = self.exit.filter(|(seq, _)| *seq > cursor);
        let mut closed = self.closed.filter(|(seq, _)| *seq > cursor);
        std::iter::from_fn(move || {
            let chunk_seq = chunks.peek().map(|kept| kept.chunk.seq);
            if let Some((seq, status)) = exit
                && chunk_seq.is_none_or(|chunk| seq < chunk)
            {
                exit = None;
                return Some(Event::Exited { seq, exit: status });
            }
            if let Some(kept) = chunks.next() {
                return Some(Event::Output(kept.chunk.clone()));
            }
            closed.take().map(|(seq, end)| Event::Closed { seq, end })
        })
    }

    /// Output after a cursor: at least one chunk if there is one, then as many
    /// as fit `max_bytes`.
    #[must_use]
    pub fn page(&self, after: Seq, max_bytes: Option<usize>) -> Page {
        let mut chunks = Vec::new();
        let mut size = 0;
        for kept in self.kept.range(self.first_after(after)..) {
            size += kept.chunk.bytes.len();
            if !chunks.is_empty() && max_bytes.is_some_and(|max| size > max) {
                break;
            }
            chunks.push(kept.chunk.clone());
        }
        let next_seq = match (max_bytes, chunks.last()) {
            (Some(_), Some(last)) => last.seq.next(),
            _ => self.next,
        };
        Page {
            chunks,
            next_seq,
            exit: self.exit(),
            closed: self.is_closed(),
        }
    }

    /// An upper estimate of the bytes in a page after a cursor.
    #[must_use]
    pub fn page_bytes(&self, after: Seq, max_bytes: Option<usize>) -> usize {
        let Some(first) = self.kept.get(self.first_after(after)) else {
            return 0;
        };
        let all = (self.total - start_of(first)) as usize;
        all.min(max_bytes.unwrap_or(all).max(first.chunk.bytes.len()))
    }

    /// Whether a read after this cursor returns at once: there is output, an
    /// exit that it has not seen, or `closed`.
    #[must_use]
    pub fn has_unseen_for(&self, after: Seq) -> bool {
        self.closed.is_some()
            || self.kept.back().is_some_and(|last| last.chunk.seq > after)
            || self.exit.is_some_and(|(seq, _)| seq > after)
    }

    /// The owner of the log.
    #[must_use]
    pub fn owner(&self) -> OwnerCursor {
        self.owner
    }

    /// Attaches an owner that has seen everything up to `cursor`.
    pub fn attach(&mut self, cursor: Seq) {
        self.owner = OwnerCursor::Attached {
            cursor: cursor.min(self.next.previous()),
        };
        self.evict();
    }

    /// Advances the owner's cursor. Does nothing if it would move backwards, or
    /// if no owner is attached.
    pub fn advance(&mut self, cursor: Seq) {
        if let OwnerCursor::Attached { cursor: seen } = &mut self.owner
            && cursor > *seen
        {
            *seen = cursor.min(self.next.previous());
            self.evict();
        }
    }

    /// Detaches the owner. Backpressure ends, and retention alone decides about
    /// eviction.
    pub fn detach(&mut self) {
        self.owner = OwnerCursor::Absent {
            cursor: self.owner.cursor(),
        };
        self.evict();
    }

    /// Suspends eviction until [`Journal::release`]. Meanwhile, reading from the
    /// child stops once the log exceeds its retention by a window.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Resumes eviction.
    pub fn release(&mut self) {
        self.held = false;
        self.evict();
    }

    /// The number of retained chunks.
    #[must_use]
    pub fn retained_chunks(&self) -> usize {
        self.kept.len()
    }

    /// Drops the oldest output beyond `bytes` once, except output that an attached owner has not seen.
    pub fn trim(&mut self, bytes: usize) {
        let retained = self.limits.retain_bytes;
        self.limits.retain_bytes = retained.min(bytes);
        self.evict();
        self.limits.retain_bytes = retained;
    }

    /// Reduces the retention. Output that an attached owner has not seen is dropped later, when it has.
    pub fn limit_retention(&mut self, bytes: usize) {
        self.limits.retain_bytes = self.limits.retain_bytes.min(bytes);
        self.evict();
    }

    /// Drops all output, when no reader is left.
    pub fn forget_output(&mut self) {
        self.kept = VecDeque::new();
    }

    /// Whether the log is closed and an attached owner has seen `closed`.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        match self.owner {
            OwnerCursor::Attached { cursor } => {
                self.closed.is_some_and(|(closed, _)| cursor >= closed)
            }
            OwnerCursor::Absent { .. } => self.closed.is_some(),
        }
    }

    /// Whether more output may be read from the child now.
    #[must_use]
    pub fn has_space(&self) -> bool {
        let Limits {
            retain_bytes,
            window_bytes,
            ..
        } = self.limits;
        let most = retain_bytes.saturating_add(window_bytes) as u64;
        if self.held && self.retained_bytes() >= most {
            return false;
        }
        let OwnerCursor::Attached { cursor } = self.owner else {
            return true;
        };
        let (bytes, chunks) = self.after(cursor);
        bytes < self.limits.window_bytes as u64 && chunks < self.limits.retain_chunks
    }

    /// The number of bytes and chunks that an attached owner has not seen.
    #[must_use]
    pub fn ahead(&self) -> (u64, usize) {
        match self.owner {
            OwnerCursor::Attached { cursor } => self.after(cursor),
            OwnerCursor::Absent { .. } => (0, 0),
        }
    }

    /// The number of retained bytes and chunks after a cursor.
    fn after(&self, cursor: Seq) -> (u64, usize) {
        let first = self.first_after(cursor);
        let bytes = match self.kept.get(first) {
            Some(kept) => self.total - start_of(kept),
            None => 0,
        };
        (bytes, self.kept.len() - first)
    }

    /// The index of the first retained chunk after a cursor.
    fn first_after(&self, cursor: Seq) -> usize {
        // Most cursors are at the end of the log.
        match self.kept.back() {
            Some(last) if last.chunk.seq > cursor => {
                self.kept.partition_point(|kept| kept.chunk.seq <= cursor)
            }
            _ => self.kept.len(),
        }
    }

    /// Drops the oldest output that exceeds the retention, except output that an
    /// attached owner has not seen. The newest chunk stays even if it alone
    /// exceeds the retention, because cutting it would leave a gap that no number
    /// shows. A retention of zero keeps nothing.
    fn evict(&mut self) {
        if self.held {
            return;
        }
        while let Some(oldest) = self.kept.front() {
            let keeps_newest = self.limits.retain_bytes > 0 && self.kept.len() == 1;
            let over = self.kept.len() > self.limits.retain_chunks
                || self.total - start_of(oldest) > self.limits.retain_bytes as u64 && !keeps_newest;
            let wanted = match self.owner {
                OwnerCursor::Attached { cursor } => oldest.chunk.seq > cursor,
                OwnerCursor::Absent { .. } => false,
            };
            if !over || wanted {
                break;
            }
            self.kept.pop_front();
        }
        self.shrink_index();
    }

    /// Shrinks the index after a burst.
    fn shrink_index(&mut self) {
        if self.kept.capacity() > 1024 && self.kept.len() < self.kept.capacity() / 8 {
            self.kept.shrink_to(self.kept.len() * 2);
        }
    }
}

fn start_of(kept: &Kept) -> u64 {
    kept.end - kept.chunk.bytes.len() as u64
}
