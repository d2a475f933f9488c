//! What is known of one process that is followed over connections.

use std::collections::BTreeMap;
use std::fmt;

/// How it went, once it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: i64,
    /// How many events were lost to retention.
    pub gaps: u64,
}

/// Who gets the bytes.
pub(super) type Taker = Box<dyn FnMut(&[u8]) + Send>;

/// An event as it came.
#[derive(Debug)]
pub(super) enum Piece {
    Output(Vec<u8>),
    Exited(i64),
    Closed,
}

/// One process, in order.
pub(super) struct Following {
    /// The last number that was taken in.
    pub(super) last: u64,
    /// The last number that was acknowledged.
    pub(super) acked: u64,
    /// What came before its turn.
    early: BTreeMap<u64, Piece>,
    sink: Taker,
    code: Option<i64>,
    closed: bool,
    gaps: u64,
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {} of {:?}, gaps {}",
            self.last,
            self.early.keys().max(),
            self.gaps
        )
    }
}

impl Following {
    pub(super) fn new(sink: Taker) -> Self {
        Following {
            last: 0,
            acked: 0,
            early: BTreeMap::new(),
            sink,
            code: None,
            closed: false,
            gaps: 0,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.closed.then(|| Outcome {
            code: self.code.expect("the exit comes before the close"),
            gaps: self.gaps,
        })
    }

    /// Takes an event in; what was there already is dropped, what is early waits.
    pub(super) fn take(&mut self, seq: u64, piece: Piece) {
        if seq > self.last {
            self.early.insert(seq, piece);
            self.settle();
        }
    }

    fn settle(&mut self) {
        while let Some(piece) = self.early.remove(&(self.last + 1)) {
            assert!(!self.closed, "nothing follows the close");
            self.last += 1;
            match piece {
                Piece::Output(bytes) => (self.sink)(&bytes),
                Piece::Exited(code) => self.code = Some(code),
                Piece::Closed => self.closed = true,
            }
        }
    }

    /// A read has answered with everything that is retained below `next`: what is missing there
    /// now is either the exit or the close, or lost.
    pub(super) fn caught_up(&mut self, next: u64, code: Option<i64>, closed: bool) {
        while self.last + 1 < next {
            let seq = self.last + 1;
            if closed && seq + 1 == next {
                self.early.insert(seq, Piece::Closed);
            } else if let Some(code) = code.filter(|_| self.code.is_none() && !self.is_early(seq)) {
                // Where the exit was among what is lost can't be told, and needn't be.
                self.early.insert(seq, Piece::Exited(code));
            } else if !self.is_early(seq) {
                self.gaps += 1;
                self.last = seq;
            }
            self.settle();
        }
    }

    fn is_early(&self, seq: u64) -> bool {
        self.early.contains_key(&seq)
    }

    /// Whether anything waits for something before it.
    pub(super) fn has_hole(&self) -> bool {
        !self.early.is_empty()
    }
}
