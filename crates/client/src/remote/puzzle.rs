//! Events of a process put into their order, wherever they come from.

use std::collections::{BTreeMap, btree_map::Entry};

use bytes::Bytes;
use outpost_journal::{Exit, Seq, Stream};
use outpost_protocol::ReadResult;

use crate::event::{Fact, stream_of};

/// What a notification says of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Output(Stream, Bytes),
    /// Older servers don't say here whether it was denied something.
    Exited {
        code: i32,
        sandbox_denied: Option<bool>,
    },
    Closed,
}

/// How many events may be kept aside. What is beyond them can be read.
const MAX_ASIDE: usize = 4096;

/// A page with as much as this may be all that fits an answer, and not all there
/// is. A server doesn't say so; another read does.
const CUT_BYTES: usize = 16 * 1024 * 1024;

/// Events that nobody has any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) from: Seq,
    pub(super) to: Seq,
}

/// Puts events into their order. What comes twice is dropped, what comes early
/// is kept aside, within bounds; what is missing has to be read.
#[derive(Debug)]
pub(super) struct Puzzle {
    /// The number that is published next.
    next: Seq,
    aside: BTreeMap<Seq, Piece>,
    aside_bytes: usize,
    max_aside_bytes: usize,
    /// The highest number that was ever heard of, kept or not.
    heard: Seq,
    exit: Option<Seq>,
    closed: bool,
    /// Where it begins isn't known yet: everything is kept aside until the first
    /// page.
    adrift: bool,
    /// The last page may have been cut short.
    cut: bool,
    /// It had exited before the number that it begins behind.
    earlier_exit: Option<Exit>,
}

#[derive(Debug)]
enum Piece {
    Fact(Fact),
    /// An exit of which the most important is missing.
    Exit {
        code: i32,
    },
}

impl Puzzle {
    /// Begins behind a number.
    pub(super) fn new(after: Seq, max_aside_bytes: usize) -> Self {
        Puzzle {
            next: after.next(),
            aside: BTreeMap::new(),
            aside_bytes: 0,
            max_aside_bytes,
            heard: after,
            exit: None,
            closed: false,
            adrift: false,
            cut: false,
            earlier_exit: None,
        }
    }

    /// Begins with whatever is retained behind a number, which the first page
    /// will show.
    pub(super) fn adrift(after: Seq, max_aside_bytes: usize) -> Self {
        Puzzle {
            adrift: true,
            // Whoever says so may have made it up.
            heard: Seq::START,
            ..Puzzle::new(after, max_aside_bytes)
        }
    }

    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// The highest number that was heard of.
    pub(super) fn heard(&self) -> Seq {
        self.heard
    }

    pub(super) fn is_adrift(&self) -> bool {
        self.adrift
    }

    pub(super) fn earlier_exit(&self) -> Option<Exit> {
        self.earlier_exit
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// A notification has come. What can be published goes to `out`. Without
    /// room output isn't kept: it can be read when there is some.
    pub(super) fn offer(&mut self, seq: Seq, heard: Heard, room: bool, out: &mut Vec<Fact>) {
        if seq < self.next || self.closed {
            return;
        }
        self.heard = self.heard.max(seq);
        if self.aside.len() >= MAX_ASIDE && !self.is_next(seq) {
            return;
        }
        let piece = match heard {
            Heard::Output(stream, bytes) => {
                if self.is_next(seq) && room {
                    // Nearly always so, and then nothing is put aside at all.
                    out.push(Fact::Output(stream, bytes));
                    self.next = seq.next();
                    return self.publish(out);
                }
                if !room || self.aside_bytes + bytes.len() > self.max_aside_bytes {
                    return;
                }
                Piece::Fact(Fact::Output(stream, bytes))
            }
            Heard::Exited {
                code,
                sandbox_denied,
            } => {
                self.exit = Some(seq);
                match sandbox_denied {
                    Some(sandbox_denied) => Piece::Fact(Fact::Exited(Exit {
                        code,
                        sandbox_denied,
                    })),
                    None => Piece::Exit { code },
                }
            }
            Heard::Closed => Piece::Fact(Fact::Closed),
        };
        self.put_aside(seq, piece);
        self.publish(out);
    }

    /// Where to read from, if something is known to be missing.
    pub(super) fn wants(&self) -> Option<Seq> {
        let missing = self.adrift || self.cut || (self.heard >= self.next && !self.closed);
        missing.then(|| self.next.previous())
    }

    /// An answer to a read has come that named no limit.
    pub(super) fn page(
        &mut self,
        page: ReadResult<Vec<u8>>,
        out: &mut Vec<Fact>,
    ) -> Result<(), Hole> {
        let end = Seq(page.next_seq);
        let bytes: usize = page.chunks.iter().map(|chunk| chunk.chunk.len()).sum();
        let oldest = page.chunks.first().map(|chunk| Seq(chunk.seq));
        self.cut = bytes >= CUT_BYTES;
        if self.adrift {
            // Nobody can have seen what has not happened, and who has seen the
            // close still wants to know how it ended.
            let last = if page.closed { end.previous() } else { end };
            self.next = self.next.min(last);
        }
        for chunk in page.chunks {
            let fact = Fact::Output(stream_of(chunk.stream), chunk.chunk.into());
            self.put_aside(Seq(chunk.seq), Piece::Fact(fact));
        }
        if page.closed && end > self.next && !self.cut {
            self.put_aside(end.previous(), Piece::Fact(Fact::Closed));
        }
        // Behind a page that was cut short there is more than the exit; what is
        // missing between two chunks of it is the exit all the same.
        if page.exited && (!self.cut || self.last_missing(end) > oldest) {
            let exit = Exit {
                code: page.exit_code.unwrap_or(-1),
                sandbox_denied: page.sandbox_denied,
            };
            self.place_exit(exit, end);
        }
        self.heard = self.heard.max(end.previous());
        if std::mem::take(&mut self.adrift) {
            self.skip_the_front(end);
        }
        self.publish(out);
        match self.first_missing(end) {
            Some(from) => Err(Hole {
                from,
                to: self.last_missing(end).unwrap_or(from),
            }),
            None => Ok(()),
        }
    }

    /// Nothing can be read any more: what is missing of an exit stays unknown. Says
    /// whether that was all that was missing.
    pub(super) fn settle_for_less(&mut self, out: &mut Vec<Fact>) -> bool {
        let mut helps = false;
        for piece in self.aside.values_mut() {
            if let Piece::Exit { code } = *piece {
                *piece = Piece::Fact(Fact::Exited(Exit {
                    code,
                    sandbox_denied: false,
                }));
                helps = true;
            }
        }
        self.publish(out);
        self.closed || (helps && self.wants().is_none())
    }

    /// A page doesn't say which number the exit has. Output is only ever
    /// forgotten from its oldest end, so if a number is missing between what is
    /// there or behind it, that is the exit's, and otherwise it is the last one
    /// that is missing in front.
    fn place_exit(&mut self, exit: Exit, end: Seq) {
        let known = self.exit.or_else(|| self.last_missing(end));
        let Some(seq) = known.filter(|seq| *seq >= self.next) else {
            if self.adrift {
                self.earlier_exit = Some(exit);
            }
            return;
        };
        self.exit = Some(seq);
        let undecided = matches!(self.aside.get(&seq), None | Some(Piece::Exit { .. }));
        if undecided {
            self.aside.insert(seq, Piece::Fact(Fact::Exited(exit)));
        }
    }

    /// Begins with the oldest event there is.
    fn skip_the_front(&mut self, end: Seq) {
        let oldest = self.aside.keys().next().copied();
        self.next = oldest.unwrap_or(end).max(self.next);
    }

    fn is_next(&self, seq: Seq) -> bool {
        seq == self.next && !self.adrift
    }

    fn put_aside(&mut self, seq: Seq, piece: Piece) {
        if seq < self.next || self.closed {
            return;
        }
        if let Entry::Vacant(place) = self.aside.entry(seq) {
            self.aside_bytes += size_of(&piece);
            place.insert(piece);
        }
    }

    /// Publishes what has its turn.
    fn publish(&mut self, out: &mut Vec<Fact>) {
        while !self.adrift
            && let Some(first) = self.aside.first_entry()
            && *first.key() == self.next
            && matches!(first.get(), Piece::Fact(_))
        {
            let piece = first.remove();
            self.aside_bytes -= size_of(&piece);
            self.next = self.next.next();
            if let Piece::Fact(fact) = piece {
                self.closed |= fact == Fact::Closed;
                out.push(fact);
            }
        }
    }

    /// The lowest number before `end` that nothing is known about.
    fn first_missing(&self, end: Seq) -> Option<Seq> {
        let mut seq = self.next;
        for known in self.aside.range(self.next..).map(|(seq, _)| *seq) {
            if known != seq {
                break;
            }
            seq = seq.next();
        }
        (seq < end).then_some(seq)
    }

    /// The highest one.
    fn last_missing(&self, end: Seq) -> Option<Seq> {
        let mut seq = end.previous();
        for known in self.aside.range(..end).rev().map(|(seq, _)| *seq) {
            if known != seq {
                break;
            }
            seq = seq.previous();
        }
        (seq >= self.next).then_some(seq)
    }
}

fn size_of(piece: &Piece) -> usize {
    match piece {
        Piece::Fact(Fact::Output(_, bytes)) => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
