//! What is here of a body and not with its client. Pure.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The pieces of a body between the network that they come from and the wire that they go to.
///
/// The reader asks whether there [is room](Self::has_room), the writer [takes](Self::take) pieces.
/// Where the client acknowledges, what it hasn't acknowledged counts as being here still: it isn't
/// in our memory but it may be in its.
#[derive(Debug)]
pub(super) struct Backlog {
    /// How many bytes may be here, and how many may be unacknowledged.
    window: usize,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Why no more is read, once that is so; `None` inside for a body that is whole.
    end: Option<Option<String>>,
    /// The number of the last piece that was taken.
    seq: u64,
    /// Pieces that were taken and not acknowledged; none are kept where nobody acknowledges.
    unacked: Option<VecDeque<(u64, usize)>>,
    unacked_bytes: usize,
    is_over: bool,
}

/// What is to be sent next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes, and their number.
    Delta(u64, Bytes),
    /// The end: its number, and what went wrong.
    Last(u64, Option<String>),
}

impl Backlog {
    pub(super) fn new(window: usize, acked: bool) -> Self {
        Backlog {
            window,
            chunks: VecDeque::new(),
            bytes: 0,
            end: None,
            seq: 0,
            unacked: acked.then(VecDeque::new),
            unacked_bytes: 0,
            is_over: false,
        }
    }

    /// Whether more of the body should be read.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.window
    }

    /// More of the body was read.
    pub(super) fn add(&mut self, chunk: Bytes) {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
    }

    /// Nothing more will be read.
    pub(super) fn end(&mut self, error: Option<String>) {
        self.end.get_or_insert(error);
    }

    /// Nobody wants what is here, and nothing more will be read.
    pub(super) fn give_up(&mut self, reason: String) {
        self.chunks.clear();
        self.bytes = 0;
        self.end = Some(Some(reason));
    }

    /// Whether [`take`](Self::take) would give something.
    pub(super) fn is_ready(&self) -> bool {
        if self.is_over {
            return false;
        }
        match self.bytes {
            0 => self.end.is_some(),
            _ => self.may_send(),
        }
    }

    /// The next piece, of so many bytes at most: whatever is here becomes one, so that many small
    /// chunks don't become many small messages when they have to wait anyway.
    pub(super) fn take(&mut self, most: usize) -> Option<Piece> {
        if !self.is_ready() {
            return None;
        }
        self.seq += 1;
        if self.bytes == 0 {
            self.is_over = true;
            return Some(Piece::Last(self.seq, self.end.take().flatten()));
        }
        let bytes = self.gather(most.max(1));
        if let Some(unacked) = &mut self.unacked {
            unacked.push_back((self.seq, bytes.len()));
            self.unacked_bytes += bytes.len();
        }
        Some(Piece::Delta(self.seq, bytes))
    }

    /// The client has everything up to a number.
    pub(super) fn acknowledge(&mut self, seq: u64) {
        let Some(unacked) = &mut self.unacked else {
            return;
        };
        while let Some((first, bytes)) = unacked.front()
            && *first <= seq
        {
            self.unacked_bytes -= bytes;
            unacked.pop_front();
        }
    }

    /// Whether the last piece was taken.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn may_send(&self) -> bool {
        self.unacked.is_none() || self.unacked_bytes < self.window
    }

    fn gather(&mut self, most: usize) -> Bytes {
        let first = match self.chunks.front_mut() {
            Some(first) if first.len() > most => first.split_to(most),
            _ => self.chunks.pop_front().unwrap_or_default(),
        };
        self.bytes -= first.len();
        let fits = |next: &Bytes, len: usize| len + next.len() <= most;
        if !self
            .chunks
            .front()
            .is_some_and(|next| fits(next, first.len()))
        {
            return first;
        }
        let mut gathered = BytesMut::from(first);
        while let Some(next) = self.chunks.front()
            && fits(next, gathered.len())
        {
            self.bytes -= next.len();
            gathered.extend_from_slice(next);
            self.chunks.pop_front();
        }
        gathered.freeze()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Read(usize),
        Take(usize),
        Ack(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..50usize).prop_map(Step::Read),
            (1..60usize).prop_map(Step::Take),
            (0..40u64).prop_map(Step::Ack),
        ]
    }

    proptest! {
        /// Whoever reads and takes in whatever order: the body comes whole and in order, numbered
        /// from 1, the end is last, and no more is here or unacknowledged than a window and the
        /// one piece that crossed it.
        #[test]
        fn a_body_comes_whole_and_bounded(
            steps in prop::collection::vec(step(), 0..200),
            window in 1..80usize,
            acked: bool,
        ) {
            let mut backlog = Backlog::new(window, acked);
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            let mut last_seq = 0;
            let mut lens = Vec::new();
            let mut acked_to = 0;
            for step in steps {
                match step {
                    Step::Read(len) if backlog.has_room() => {
                        let chunk: Vec<u8> = (0..len).map(|at| (sent.len() + at) as u8).collect();
                        sent.extend_from_slice(&chunk);
                        backlog.add(chunk.into());
                    }
                    Step::Read(_) => prop_assert!(backlog.bytes >= window),
                    Step::Take(most) => {
                        let ready = backlog.is_ready();
                        let piece = backlog.take(most);
                        prop_assert_eq!(piece.is_some(), ready);
                        if let Some(piece) = piece {
                            let Piece::Delta(seq, bytes) = piece else { panic!("no end yet") };
                            prop_assert!(!bytes.is_empty() && bytes.len() <= most);
                            prop_assert_eq!(seq, last_seq + 1);
                            last_seq = seq;
                            lens.push(bytes.len());
                            got.extend_from_slice(&bytes);
                        }
                    }
                    Step::Ack(seq) => {
                        backlog.acknowledge(seq);
                        acked_to = acked_to.max(seq.min(last_seq));
                    }
                }
                prop_assert!(backlog.bytes < window + 50);
                let unacked: usize = lens.iter().skip(acked_to as usize).sum();
                if acked {
                    prop_assert_eq!(backlog.unacked_bytes, unacked);
                    prop_assert!(unacked < window + 60);
                }
            }
            backlog.end(Some("why".to_owned()));
            loop {
                backlog.acknowledge(u64::MAX);
                match backlog.take(10).expect("something until the end") {
                    Piece::Delta(seq, bytes) => {
                        last_seq = seq;
                        got.extend_from_slice(&bytes);
                    }
                    Piece::Last(seq, error) => {
                        prop_assert_eq!((seq, error.as_deref()), (last_seq + 1, Some("why")));
                        break;
                    }
                }
            }
            prop_assert_eq!(got, sent);
            prop_assert!(backlog.is_over() && !backlog.is_ready());
        }
    }

    #[test]
    fn small_chunks_that_wait_become_one_piece() {
        let mut backlog = Backlog::new(100, false);
        for chunk in ["a", "bc", "def"] {
            backlog.add(Bytes::from_static(chunk.as_bytes()));
        }
        assert_eq!(backlog.take(4), Some(Piece::Delta(1, "abc".into())));
        assert_eq!(backlog.take(2), Some(Piece::Delta(2, "de".into())));
        assert_eq!(backlog.take(9), Some(Piece::Delta(3, "f".into())));
        assert_eq!(backlog.take(9), None);
    }

    #[test]
    fn what_nobody_wants_ends_at_once() {
        let mut backlog = Backlog::new(3, true);
        backlog.add("abcdef".into());
        assert_eq!(backlog.take(4), Some(Piece::Delta(1, "abcd".into())));
        backlog.give_up("why".to_owned());
        assert_eq!(
            backlog.take(4),
            Some(Piece::Last(2, Some("why".to_owned())))
        );
        assert_eq!(backlog.take(4), None);
    }

    #[test]
    fn who_acknowledges_nothing_gets_a_window_and_still_the_end() {
        let mut backlog = Backlog::new(3, true);
        backlog.add("abcd".into());
        backlog.add("ef".into());
        assert_eq!(backlog.take(4), Some(Piece::Delta(1, "abcd".into())));
        assert_eq!(backlog.take(4), None);
        backlog.acknowledge(1);
        assert_eq!(backlog.take(4), Some(Piece::Delta(2, "ef".into())));
        backlog.end(None);
        assert_eq!(backlog.take(4), Some(Piece::Last(3, None)));
    }
}
