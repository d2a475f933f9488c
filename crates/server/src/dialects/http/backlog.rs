//! The part of a body that is received but not delivered. Pure.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Buffers a body between the remote host and the client.
///
/// The reader checks for [space](Self::has_space), the writer [takes](Self::take) pieces. If the
/// client acknowledges pieces, a second window limits the unacknowledged bytes, which may be in the
/// client's memory.
#[derive(Debug)]
pub(super) struct Backlog {
    /// The limit of buffered bytes, and of unacknowledged bytes.
    window: usize,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Set once reading has ended, with the error if the body is incomplete.
    end: Option<Option<String>>,
    /// The number of the last taken piece.
    seq: u64,
    /// The unacknowledged pieces; none if the client does not acknowledge.
    unacked: Option<VecDeque<(u64, usize)>>,
    unacked_bytes: usize,
    is_over: bool,
}

/// A piece to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyChunk {
    /// Bytes and their number.
    Delta(u64, Bytes),
    /// The end: its number and the error, if there is one.
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
    pub(super) fn has_space(&self) -> bool {
        self.bytes < self.window
    }

    /// Adds bytes that were read.
    pub(super) fn add(&mut self, chunk: Bytes) {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
    }

    /// Ends the body.
    pub(super) fn end(&mut self, error: Option<String>) {
        self.end.get_or_insert(error);
    }

    /// Discards the buffered bytes and ends the body with an error.
    pub(super) fn abort(&mut self, reason: String) {
        self.chunks.clear();
        self.bytes = 0;
        self.end = Some(Some(reason));
    }

    /// Whether [`take`](Self::take) returns a piece.
    pub(super) fn is_ready(&self) -> bool {
        if self.is_over {
            return false;
        }
        match self.bytes {
            0 => self.end.is_some(),
            _ => self.may_send(),
        }
    }

    /// The next piece of at most `most` bytes. Merges buffered chunks, so that many small chunks do not
    /// become many small messages.
    pub(super) fn take(&mut self, most: usize) -> Option<BodyChunk> {
        if !self.is_ready() {
            return None;
        }
        self.seq += 1;
        if self.bytes == 0 {
            self.is_over = true;
            return Some(BodyChunk::Last(self.seq, self.end.take().flatten()));
        }
        let bytes = self.gather(most.max(1));
        if let Some(unacked) = &mut self.unacked {
            unacked.push_back((self.seq, bytes.len()));
            self.unacked_bytes += bytes.len();
        }
        Some(BodyChunk::Delta(self.seq, bytes))
    }

    /// Records that the client has received everything up to `seq`.
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
        /// In any order of reads and takes, the body is complete and in order, numbered from 1, with
        /// the end last, and neither the buffer nor the unacknowledged bytes exceed the window by more
        /// than one piece.
        #[test]
        fn body_is_complete_ordered_and_bounded(
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
                    Step::Read(len) if backlog.has_space() => {
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
                            let BodyChunk::Delta(seq, bytes) = piece else { panic!("no end yet") };
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
                    BodyChunk::Delta(seq, bytes) => {
                        last_seq = seq;
                        got.extend_from_slice(&bytes);
                    }
                    BodyChunk::Last(seq, error) => {
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
    fn buffered_small_chunks_are_merged() {
        let mut backlog = Backlog::new(100, false);
        for chunk in ["a", "bc", "def"] {
            backlog.add(Bytes::from_static(chunk.as_bytes()));
        }
        assert_eq!(backlog.take(4), Some(BodyChunk::Delta(1, "abc".into())));
        assert_eq!(backlog.take(2), Some(BodyChunk::Delta(2, "de".into())));
        assert_eq!(backlog.take(9), Some(BodyChunk::Delta(3, "f".into())));
        assert_eq!(backlog.take(9), None);
    }

    #[test]
    fn aborted_body_ends_at_once() {
        let mut backlog = Backlog::new(3, true);
        backlog.add("abcdef".into());
        assert_eq!(backlog.take(4), Some(BodyChunk::Delta(1, "abcd".into())));
        backlog.abort("why".to_owned());
        assert_eq!(
            backlog.take(4),
            Some(BodyChunk::Last(2, Some("why".to_owned())))
        );
        assert_eq!(backlog.take(4), None);
    }

    #[test]
    fn unacknowledged_window_stops_data_but_not_the_end() {
        let mut backlog = Backlog::new(3, true);
        backlog.add("abcd".into());
        backlog.add("ef".into());
        assert_eq!(backlog.take(4), Some(BodyChunk::Delta(1, "abcd".into())));
        assert_eq!(backlog.take(4), None);
        backlog.acknowledge(1);
        assert_eq!(backlog.take(4), Some(BodyChunk::Delta(2, "ef".into())));
        backlog.end(None);
        assert_eq!(backlog.take(4), Some(BodyChunk::Last(3, None)));
    }
}
