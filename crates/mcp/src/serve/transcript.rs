//! What a process has written, as far as it is kept.

use std::collections::{BTreeMap, VecDeque};

/// Small writes are put together up to this size, and large ones taken apart: it
/// is what is forgotten at once.
const CHUNK: usize = 8 * 1024;

/// Which of its two streams; a terminal has the first one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// How much of each stream is kept. Its beginning says what was done, its end how
/// it went; what is between them goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bytes of the beginning.
    pub head: usize,
    /// Bytes of the end.
    pub tail: usize,
    /// Chunks of each, so that a trickle of single bytes is bounded too.
    pub chunks: usize,
}

/// Everything that is known of what a process wrote. Every byte has a place in
/// the whole of it, in the order of arrival, and a cursor is such a place.
#[derive(Debug)]
pub(super) struct Transcript {
    keep: Keep,
    /// By place.
    chunks: BTreeMap<u64, Chunk>,
    end: u64,
    stdout: Side,
    stderr: Side,
}

#[derive(Debug)]
struct Chunk {
    stream: Stream,
    /// Its place among the bytes of its stream.
    within: u64,
    bytes: Vec<u8>,
    /// Kept to the last.
    head: bool,
}

/// What is known of one stream.
#[derive(Debug, Default)]
struct Side {
    total: u64,
    head_chunks: usize,
    /// The places of its chunks that may be forgotten, oldest first,
    tail: VecDeque<u64>,
    /// and how many bytes they have.
    tail_bytes: usize,
}

/// A run of bytes that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// Its place in the whole.
    pub(super) at: u64,
    /// Its place among the bytes that were asked for.
    pub(super) within: u64,
    pub(super) bytes: &'a [u8],
}

impl Transcript {
    pub(super) fn new(keep: Keep) -> Self {
        Transcript {
            keep,
            chunks: BTreeMap::new(),
            end: 0,
            stdout: Side::default(),
            stderr: Side::default(),
        }
    }

    /// The place behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes were written, kept or not.
    pub(super) fn total(&self, of: Option<Stream>) -> u64 {
        match of {
            None => self.end,
            Some(stream) => self.side(stream).total,
        }
    }

    /// How many bytes are kept.
    pub(super) fn kept(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.bytes.len()).sum()
    }

    pub(super) fn append(&mut self, stream: Stream, bytes: &[u8]) {
        for part in bytes.chunks(CHUNK) {
            let Keep { head, chunks, .. } = self.keep;
            let side = self.side(stream);
            let room = match side.head_chunks < chunks {
                true => (head as u64).saturating_sub(side.total),
                false => 0,
            };
            let room = usize::try_from(room).unwrap_or(usize::MAX).min(part.len());
            let (first, rest) = part.split_at(room);
            self.put(stream, first, true);
            self.put(stream, rest, false);
        }
        self.forget(stream);
    }

    /// What is kept from a place on, of one stream or of both as they came.
    pub(super) fn pieces(&self, of: Option<Stream>, from: u64) -> impl Iterator<Item = Piece<'_>> {
        let before = self.chunks.range(..from).next_back();
        let first = match before {
            Some((at, chunk)) if at + chunk.bytes.len() as u64 > from => *at,
            _ => from,
        };
        self.chunks
            .range(first..)
            .filter(move |(_, chunk)| of.is_none_or(|stream| stream == chunk.stream))
            .map(move |(at, chunk)| {
                let skipped = from.saturating_sub(*at);
                let within = match of {
                    None => *at,
                    Some(_) => chunk.within,
                };
                let count = usize::try_from(skipped).unwrap_or(usize::MAX);
                Piece {
                    at: at + skipped,
                    within: within + skipped,
                    bytes: chunk.bytes.get(count..).unwrap_or_default(),
                }
            })
    }

    fn put(&mut self, stream: Stream, bytes: &[u8], head: bool) {
        if bytes.is_empty() {
            return;
        }
        let (at, within) = (self.end, self.side(stream).total);
        let count = bytes.len();
        self.end += count as u64;
        let last = self.chunks.last_entry().map(|last| last.into_mut());
        let joined = match last {
            Some(last)
                if last.stream == stream
                    && last.head == head
                    && last.bytes.len() + count <= CHUNK =>
            {
                last.bytes.extend_from_slice(bytes);
                true
            }
            _ => {
                let chunk = Chunk {
                    stream,
                    within,
                    bytes: bytes.to_vec(),
                    head,
                };
                self.chunks.insert(at, chunk);
                false
            }
        };
        let side = self.side_mut(stream);
        side.total += count as u64;
        match (head, joined) {
            (true, false) => side.head_chunks += 1,
            (true, true) => {}
            (false, joined) => {
                side.tail_bytes += count;
                if !joined {
                    side.tail.push_back(at);
                }
            }
        }
    }

    fn forget(&mut self, stream: Stream) {
        let Keep { tail, chunks, .. } = self.keep;
        loop {
            let side = self.side_mut(stream);
            if side.tail_bytes <= tail && side.tail.len() <= chunks {
                return;
            }
            let Some(at) = side.tail.pop_front() else {
                return;
            };
            let gone = self.chunks.remove(&at).map_or(0, |gone| gone.bytes.len());
            self.side_mut(stream).tail_bytes -= gone;
        }
    }

    fn side(&self, stream: Stream) -> &Side {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    fn side_mut(&mut self, stream: Stream) -> &mut Side {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Keep = Keep {
        head: 10,
        tail: 20_000,
        chunks: 8,
    };

    fn stream() -> impl Strategy<Value = Stream> {
        prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_written_where_it_was(
            writes in prop::collection::vec((stream(), prop::collection::vec(any::<u8>(), 0..9000)), 0..40),
            from in 0_u64..200_000,
        ) {
            let mut transcript = Transcript::new(SMALL);
            let (mut all, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
            for (stream, bytes) in &writes {
                transcript.append(*stream, bytes);
                all.extend_from_slice(bytes);
                match stream {
                    Stream::Stdout => out.extend_from_slice(bytes),
                    Stream::Stderr => err.extend_from_slice(bytes),
                }
            }
            prop_assert_eq!(transcript.end(), all.len() as u64);
            for (of, written) in [
                (None, &all),
                (Some(Stream::Stdout), &out),
                (Some(Stream::Stderr), &err),
            ] {
                prop_assert_eq!(transcript.total(of), written.len() as u64);
                let mut last = from;
                for piece in transcript.pieces(of, from) {
                    prop_assert!(piece.at >= last, "in order, and not before the cursor");
                    last = piece.at + piece.bytes.len() as u64;
                    let begin = usize::try_from(piece.within).unwrap();
                    prop_assert_eq!(&written[begin..begin + piece.bytes.len()], piece.bytes);
                }
            }
            // Each stream keeps its beginning and its last chunk at least.
            for (of, written) in [(Stream::Stdout, &out), (Stream::Stderr, &err)] {
                let kept: Vec<_> = transcript.pieces(Some(of), 0).collect();
                let head = written.len().min(SMALL.head);
                let first: usize = kept.iter().take_while(|p| p.within < head as u64)
                    .map(|p| p.bytes.len()).sum();
                prop_assert!(first >= head);
                if let Some(last) = kept.last() {
                    prop_assert_eq!(last.within + last.bytes.len() as u64, written.len() as u64);
                }
            }
            let most = 2 * (SMALL.head + SMALL.tail);
            prop_assert!(transcript.kept() <= most);
        }
    }

    #[test]
    fn a_flood_on_one_stream_leaves_the_other_alone() {
        let mut transcript = Transcript::new(SMALL);
        transcript.append(Stream::Stderr, b"a warning early on");
        transcript.append(Stream::Stdout, &[b'x'; 1_000_000]);
        let err: Vec<_> = transcript.pieces(Some(Stream::Stderr), 0).collect();
        assert_eq!(err.iter().map(|p| p.bytes.len()).sum::<usize>(), 18);
    }

    #[test]
    fn a_trickle_is_bounded_too() {
        let mut transcript = Transcript::new(SMALL);
        for _ in 0..1000 {
            transcript.append(Stream::Stdout, b"o");
            transcript.append(Stream::Stderr, b"e");
        }
        assert!(transcript.chunks.len() <= 4 * SMALL.chunks);
        assert_eq!(transcript.end(), 2000);
    }
}
