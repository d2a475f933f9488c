//! The log itself.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::{Chunk, End, Event, Exit, Limits, Owner, Page, Seq, Stream};

/// An output event as it is kept, with its place in the stream of all bytes,
/// so that "how many bytes lie behind this cursor" needs no summing up.
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
    /// Output that is still retained. Exit and close are not in here: they
    /// are the terminal state and never evicted.
    kept: VecDeque<Kept>,
    /// The number that the next event gets.
    next: Seq,
    /// All output bytes ever appended.
    total: u64,
    exit: Option<(Seq, Exit)>,
    closed: Option<(Seq, End)>,
    owner: Owner,
    /// Nothing is evicted: an owner has just come back and may want to read
    /// what it missed.
    held: bool,
}

impl Journal {
    /// An empty log that waits for nobody yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Journal {
            limits,
            kept: VecDeque::new(),
            next: Seq(1),
            total: 0,
            exit: None,
            closed: None,
            owner: Owner::Absent { cursor: Seq::START },
            held: false,
        }
    }

    /// The log of a process whose events up to `seen` are somebody else's: the
    /// next one gets the number after it.
    #[must_use]
    pub fn starting_after(limits: Limits, seen: Seq) -> Self {
        Journal {
            next: seen.next(),
            owner: Owner::Absent { cursor: seen },
            ..Journal::new(limits)
        }
    }

    /// Appends output. Nothing may follow the close, and an empty chunk is no
    /// event.
    pub fn output(&mut self, stream: Stream, bytes: Bytes) {
        debug_assert!(self.closed.is_none(), "output after the close");
        if bytes.is_empty() || self.closed.is_some() {
            return;
        }
        self.total += bytes.len() as u64;
        let seq = self.take_number();
        self.kept.push_back(Kept {
            chunk: Chunk { seq, stream, bytes },
            end: self.total,
        });
        self.evict();
    }

    /// Leaves a number out: somebody has counted something that is no event.
    pub fn skip(&mut self) {
        self.take_number();
    }

    /// Appends the exit; only the first one counts.
    pub fn exited(&mut self, exit: Exit) {
        debug_assert!(self.closed.is_none(), "exit after the close");
        if self.exit.is_none() && self.closed.is_none() {
            let seq = self.take_number();
            self.exit = Some((seq, exit));
        }
    }

    /// The exit was among what [`Journal::starting_after`] left out. It counts as
    /// the last of that.
    pub fn had_exited(&mut self, exit: Exit) {
        if self.exit.is_none() {
            self.exit = Some((self.next.previous(), exit));
        }
    }

    /// Appends the close; it is always last, and only once.
    pub fn close(&mut self, end: End) {
        debug_assert!(self.exit.is_some(), "close before the exit");
        if self.closed.is_none() {
            let seq = self.take_number();
            self.closed = Some((seq, end));
        }
    }

    fn take_number(&mut self) -> Seq {
        let seq = self.next;
        self.next = seq.next();
        seq
    }

    /// The number that the next event will get.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// How the process ended, once that is known.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.exit.map(|(_, exit)| exit)
    }

    /// Whether nothing follows any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// How many output bytes were ever appended.
    #[must_use]
    pub fn bytes_out(&self) -> u64 {
        self.total
    }

    /// How many output bytes are retained now.
    #[must_use]
    pub fn retained_bytes(&self) -> u64 {
        self.kept
            .front()
            .map_or(0, |oldest| self.total - start_of(oldest))
    }

    /// Whether the log has anything behind this cursor.
    #[must_use]
    pub fn has_after(&self, cursor: Seq) -> bool {
        self.next > cursor.next()
    }

    /// The events behind a cursor, in order. Where output was evicted, the
    /// first number is not the one after the cursor.
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

    /// Output behind a cursor: at least one chunk if there is one, then as
    /// many as fit the budget.
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

    /// How many bytes a page behind a cursor holds, or a little more.
    #[must_use]
    pub fn page_bytes(&self, after: Seq, max_bytes: Option<usize>) -> usize {
        let Some(first) = self.kept.get(self.first_after(after)) else {
            return 0;
        };
        let all = (self.total - start_of(first)) as usize;
        all.min(max_bytes.unwrap_or(all).max(first.chunk.bytes.len()))
    }

    /// Whether a reader at this cursor has something to hear at once: output,
    /// an exit it has not seen, or the close.
    #[must_use]
    pub fn has_news_for(&self, after: Seq) -> bool {
        self.closed.is_some()
            || self.kept.back().is_some_and(|last| last.chunk.seq > after)
            || self.exit.is_some_and(|(seq, _)| seq > after)
    }

    /// Who the log waits for.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Lets an owner in, which has seen everything up to `cursor`.
    pub fn attach(&mut self, cursor: Seq) {
        self.owner = Owner::Attached {
            cursor: cursor.min(self.next.previous()),
        };
        self.evict();
    }

    /// The owner has seen everything up to `cursor`. A cursor never goes back
    /// this way, and without an owner nothing happens.
    pub fn advance(&mut self, cursor: Seq) {
        if let Owner::Attached { cursor: seen } = &mut self.owner
            && cursor > *seen
        {
            *seen = cursor.min(self.next.previous());
            self.evict();
        }
    }

    /// The owner has gone: nobody holds the child back, and retention alone
    /// decides what stays.
    pub fn detach(&mut self) {
        self.owner = Owner::Absent {
            cursor: self.owner.cursor(),
        };
        self.evict();
    }

    /// Evicts nothing until [`Journal::release`]. Meanwhile the child is held
    /// back once the log is a window larger than it would be otherwise.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Evicts again.
    pub fn release(&mut self) {
        self.held = false;
        self.evict();
    }

    /// Drops all output: nobody will read it any more.
    pub fn forget_output(&mut self) {
        self.kept = VecDeque::new();
    }

    /// Whether the owner, if the log waits for one, has seen the close.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        match self.owner {
            Owner::Attached { cursor } => self.closed.is_some_and(|(closed, _)| cursor >= closed),
            Owner::Absent { .. } => self.closed.is_some(),
        }
    }

    /// Whether more may be read from the child now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let Limits {
            retain_bytes,
            window_bytes,
            ..
        } = self.limits;
        let most = retain_bytes.saturating_add(window_bytes) as u64;
        if self.held && self.retained_bytes() >= most {
            return false;
        }
        let Owner::Attached { cursor } = self.owner else {
            return true;
        };
        let (bytes, chunks) = self.behind(cursor);
        bytes < self.limits.window_bytes as u64 && chunks < self.limits.retain_chunks
    }

    /// How many bytes, in how many chunks, an attached owner has not seen.
    #[must_use]
    pub fn ahead(&self) -> (u64, usize) {
        match self.owner {
            Owner::Attached { cursor } => self.behind(cursor),
            Owner::Absent { .. } => (0, 0),
        }
    }

    /// How many bytes are retained behind a cursor, in how many chunks.
    fn behind(&self, cursor: Seq) -> (u64, usize) {
        let first = self.first_after(cursor);
        let bytes = match self.kept.get(first) {
            Some(kept) => self.total - start_of(kept),
            None => 0,
        };
        (bytes, self.kept.len() - first)
    }

    /// Index of the first retained chunk behind a cursor.
    fn first_after(&self, cursor: Seq) -> usize {
        // The usual cursors are at the end, or near the start of what is kept.
        match self.kept.back() {
            Some(last) if last.chunk.seq > cursor => {
                self.kept.partition_point(|kept| kept.chunk.seq <= cursor)
            }
            _ => self.kept.len(),
        }
    }

    /// Drops the oldest output that retention doesn't cover, but nothing that
    /// an attached owner has not seen. The newest chunk stays even if it alone is
    /// too large: some of it is better than nothing, and to cut it would be a gap
    /// that no number shows. Who wants nothing retained gets that.
    fn evict(&mut self) {
        if self.held {
            return;
        }
        while let Some(oldest) = self.kept.front() {
            let keeps_newest = self.limits.retain_bytes > 0 && self.kept.len() == 1;
            let over = self.kept.len() > self.limits.retain_chunks
                || self.total - start_of(oldest) > self.limits.retain_bytes as u64 && !keeps_newest;
            let wanted = match self.owner {
                Owner::Attached { cursor } => oldest.chunk.seq > cursor,
                Owner::Absent { .. } => false,
            };
            if !over || wanted {
                break;
            }
            self.kept.pop_front();
        }
        self.give_back_memory();
    }

    /// A burst must not pin its index for the rest of an idle life.
    fn give_back_memory(&mut self) {
        if self.kept.capacity() > 1024 && self.kept.len() < self.kept.capacity() / 8 {
            self.kept.shrink_to(self.kept.len() * 2);
        }
    }
}

fn start_of(kept: &Kept) -> u64 {
    kept.end - kept.chunk.bytes.len() as u64
}
