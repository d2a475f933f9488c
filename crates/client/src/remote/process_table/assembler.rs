//! Assembles the events of a process in order, from notifications and reads.

use std::collections::{BTreeMap, BTreeSet};

use outpost_journal::{Chunk, Event, Exit, OutputEnd, Seq};
use outpost_protocol::ReadResult;

use crate::process::output_len;

/// Maximum number of buffered events. Events beyond it are read later.
const MAX_BUFFERED: usize = 4096;

/// A page of this size may have been truncated to the size of a response. The server does not
/// say so; another read tells.
const TRUNCATED_BYTES: usize = 16 * 1024 * 1024;

/// Events that are lost: the server no longer retains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostRange {
    pub(super) from: Seq,
    pub(super) to: Seq,
}

/// Puts events in order. Drops duplicates and buffers early events within bounds. Events in a gap
/// must be read.
#[derive(Debug)]
pub(super) struct EventAssembler {
    /// The next event to return.
    pub(super) next: Seq,
    /// Events after a gap.
    buffered: BTreeMap<Seq, Event>,
    /// Buffered exits whose `sandbox_denied` is unknown: a read must complete them.
    incomplete_exits: BTreeSet<Seq>,
    buffered_bytes: usize,
    max_buffered_bytes: usize,
    /// The highest number seen, whether or not the event was buffered.
    pub(super) highest: Seq,
    exit: Option<Seq>,
    pub(super) closed: bool,
    /// Whether the first retained event is unknown. Events are buffered until the first page.
    pub(super) awaits_first_page: bool,
    /// Whether the last page may have been truncated.
    truncated: bool,
    /// The exit, if it precedes the first event.
    pub(super) earlier_exit: Option<Exit>,
}

impl EventAssembler {
    /// Starts after a number.
    pub(super) fn new(after: Seq, max_buffered_bytes: usize) -> Self {
        EventAssembler {
            next: after.next(),
            buffered: BTreeMap::new(),
            incomplete_exits: BTreeSet::new(),
            buffered_bytes: 0,
            max_buffered_bytes,
            highest: after,
            exit: None,
            closed: false,
            awaits_first_page: false,
            truncated: false,
            earlier_exit: None,
        }
    }

    /// Starts with the oldest retained event after a number. The first page tells which it is.
    pub(super) fn attached(after: Seq, max_buffered_bytes: usize) -> Self {
        EventAssembler {
            awaits_first_page: true,
            // The caller's number may be higher than any event.
            highest: Seq::START,
            ..EventAssembler::new(after, max_buffered_bytes)
        }
    }

    /// Inserts an event from a notification and moves events that are next in order to `out`.
    /// Without space, output is dropped and must be read later. An `incomplete` exit is held back
    /// until it is read.
    pub(super) fn insert(
        &mut self,
        event: Event,
        incomplete: bool,
        has_space: bool,
        out: &mut Vec<Event>,
    ) {
        let seq = event.seq();
        if seq < self.next || self.closed {
            return;
        }
        self.highest = self.highest.max(seq);
        if self.buffered.len() >= MAX_BUFFERED && !self.is_next(seq) {
            return;
        }
        match &event {
            Event::Output(chunk) => {
                if self.is_next(seq) && has_space {
                    // The common case: no buffering.
                    out.push(event);
                    self.next = seq.next();
                    return self.drain(out);
                }
                if !has_space || self.buffered_bytes + chunk.bytes.len() > self.max_buffered_bytes {
                    return;
                }
            }
            Event::Exited { .. } => self.exit = Some(seq),
            Event::Closed { .. } => {}
        }
        if self.buffer(event) && incomplete {
            self.incomplete_exits.insert(seq);
        }
        self.drain(out);
    }

    /// Returns where to read from, if events are missing.
    pub(super) fn missing_after(&self) -> Option<Seq> {
        let missing =
            self.awaits_first_page || self.truncated || (self.highest >= self.next && !self.closed);
        missing.then(|| self.next.previous())
    }

    /// Inserts the response to a read without a byte limit.
    pub(super) fn insert_page(
        &mut self,
        page: ReadResult<Vec<u8>>,
        out: &mut Vec<Event>,
    ) -> Result<(), LostRange> {
        let end = Seq(page.next_seq);
        let bytes: usize = page.chunks.iter().map(|chunk| chunk.chunk.len()).sum();
        let oldest = page.chunks.first().map(|chunk| Seq(chunk.seq));
        self.truncated = bytes >= TRUNCATED_BYTES;
        if self.awaits_first_page {
            // Clamp the cursor to the last event; for a closed process, replay `closed`.
            let last = if page.closed { end.previous() } else { end };
            self.next = self.next.min(last);
        }
        for chunk in page.chunks {
            self.buffer(Event::Output(Chunk {
                seq: Seq(chunk.seq),
                stream: chunk.stream,
                bytes: chunk.chunk.into(),
            }));
        }
        if page.closed && end > self.next && !self.truncated {
            self.buffer(Event::Closed {
                seq: end.previous(),
                end: OutputEnd::Whole,
            });
        }
        // The exit may be behind the end of a truncated page, unless the gap is between two of
        // its chunks.
        if page.exited && (!self.truncated || self.last_missing(end) > oldest) {
            let exit = Exit {
                code: page.exit_code.unwrap_or(-1),
                sandbox_denied: page.sandbox_denied,
                ended_by: page.ended_by,
                usage: page.usage,
            };
            self.insert_exit(exit, end);
        }
        self.highest = self.highest.max(end.previous());
        if std::mem::take(&mut self.awaits_first_page) {
            self.start_at_oldest(end);
        }
        self.drain(out);
        match self.first_missing(end) {
            Some(from) => Err(LostRange {
                from,
                to: self.last_missing(end).unwrap_or(from),
            }),
            None => Ok(()),
        }
    }

    /// Completes an exit without `sandbox_denied`, because a read has failed. Returns whether no
    /// other event is missing.
    pub(super) fn accept_incomplete_exit(&mut self, out: &mut Vec<Event>) -> bool {
        let accepted = !self.incomplete_exits.is_empty();
        self.incomplete_exits.clear();
        self.drain(out);
        self.closed || (accepted && self.missing_after().is_none())
    }

    /// Inserts the exit of a page, which does not tell its number. Servers forget only the oldest
    /// output, so the highest number that is missing is the exit's.
    fn insert_exit(&mut self, exit: Exit, end: Seq) {
        let known = self.exit.or_else(|| self.last_missing(end));
        let Some(seq) = known.filter(|seq| *seq >= self.next) else {
            if self.awaits_first_page {
                self.earlier_exit = Some(exit);
            }
            return;
        };
        self.exit = Some(seq);
        if self.incomplete_exits.remove(&seq) || !self.buffered.contains_key(&seq) {
            self.buffered.insert(seq, Event::Exited { seq, exit });
        }
    }

    fn start_at_oldest(&mut self, end: Seq) {
        let oldest = self.buffered.keys().next().copied();
        self.next = oldest.unwrap_or(end).max(self.next);
    }

    fn is_next(&self, seq: Seq) -> bool {
        seq == self.next && !self.awaits_first_page
    }

    /// Buffers an event and returns whether it is new.
    fn buffer(&mut self, event: Event) -> bool {
        let seq = event.seq();
        let new = seq >= self.next && !self.closed && !self.buffered.contains_key(&seq);
        if new {
            self.buffered_bytes += output_len(&event);
            self.buffered.insert(seq, event);
        }
        new
    }

    /// Moves buffered events that are next in order to `out`.
    fn drain(&mut self, out: &mut Vec<Event>) {
        while !self.awaits_first_page
            && let Some(first) = self.buffered.first_entry()
            && *first.key() == self.next
            && !self.incomplete_exits.contains(first.key())
        {
            let event = first.remove();
            self.buffered_bytes -= output_len(&event);
            self.next = self.next.next();
            self.closed |= matches!(event, Event::Closed { .. });
            out.push(event);
        }
    }

    /// Returns the lowest missing number before `end`.
    fn first_missing(&self, end: Seq) -> Option<Seq> {
        let mut seq = self.next;
        for known in self.buffered.range(self.next..).map(|(seq, _)| *seq) {
            if known != seq {
                break;
            }
            seq = seq.next();
        }
        (seq < end).then_some(seq)
    }

    /// Returns the highest missing number before `end`.
    fn last_missing(&self, end: Seq) -> Option<Seq> {
        let mut seq = end.previous();
        for known in self.buffered.range(..end).rev().map(|(seq, _)| *seq) {
            if known != seq {
                break;
            }
            seq = seq.previous();
        }
        (seq >= self.next).then_some(seq)
    }
}

#[cfg(test)]
mod tests;
