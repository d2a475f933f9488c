//! How much of a transcript is shown at once, and where the rest is.

use super::transcript::{Stream, Transcript};

/// A part of a transcript behind a cursor, without a hole in it: where something is
/// forgotten a page ends, and the next one begins behind that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    /// The cursor to go on with.
    pub(super) next: u64,
    /// How many bytes between the cursor and these are forgotten.
    pub(super) missed: u64,
    /// Whether there is more right now.
    pub(super) more: bool,
}

/// The beginning and the end of something that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) head: Vec<u8>,
    /// What is between them; none if that is nothing.
    pub(super) cut: Option<Cut>,
    pub(super) tail: Vec<u8>,
}

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) bytes: u64,
    /// The cursor at which it begins.
    pub(super) from: u64,
}

impl Page {
    /// What is behind a cursor, at most so many bytes. If `ended`, nothing will
    /// follow that could complete a character.
    pub(super) fn of(
        transcript: &Transcript,
        stream: Option<Stream>,
        cursor: u64,
        most: usize,
        ended: bool,
    ) -> Self {
        // One that is beyond the end has nothing to wait for there.
        let cursor = cursor.min(transcript.end());
        let mut expected = within_at(transcript, stream, cursor);
        let mut run = Run::from(cursor);
        let (mut missed, mut more, mut at_gap) = (0, false, false);
        for piece in transcript.pieces(stream, cursor) {
            let room = most - run.bytes.len();
            at_gap = piece.within > expected && !run.bytes.is_empty();
            if room == 0 || at_gap {
                more = true;
                break;
            }
            missed += piece.within - expected;
            let taken = piece.bytes.len().min(room);
            run.take(piece.at, &piece.bytes[..taken]);
            expected = piece.within + taken as u64;
            if taken < piece.bytes.len() {
                more = true;
                break;
            }
        }
        // The rest of a character at a gap won't come.
        let half = match (more || !ended) && !at_gap {
            true => unfinished(&run.bytes),
            false => 0,
        };
        run.give_back(half);
        let next = match half == 0 && !more {
            // What the other stream wrote meanwhile isn't looked at again.
            true => transcript.end(),
            false => run.behind,
        };
        Page {
            bytes: run.bytes,
            next,
            missed,
            more,
        }
    }
}

/// Bytes that were taken one after the other, with what the other stream wrote
/// between them left out.
struct Run {
    bytes: Vec<u8>,
    /// Where in the whole each part was, and how long.
    parts: Vec<(u64, usize)>,
    /// The place behind the last byte.
    behind: u64,
}

impl Run {
    fn from(place: u64) -> Self {
        Run {
            bytes: Vec::new(),
            parts: Vec::new(),
            behind: place,
        }
    }

    fn take(&mut self, at: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.parts.push((at, bytes.len()));
        self.behind = at + bytes.len() as u64;
    }

    /// Takes the last bytes out again, so that they are what comes next.
    fn give_back(&mut self, count: usize) {
        self.bytes.truncate(self.bytes.len() - count);
        let mut left = count;
        while left > 0
            && let Some((at, length)) = self.parts.pop()
        {
            let kept = length.saturating_sub(left);
            left -= length - kept;
            self.behind = at + kept as u64;
            if kept > 0 {
                self.parts.push((at, kept));
            }
        }
    }
}

/// How many bytes of a stream were before a place of the whole.
fn within_at(transcript: &Transcript, stream: Option<Stream>, place: u64) -> u64 {
    if stream.is_none() {
        return place;
    }
    // The last piece before it knows; what was between that and here is another's,
    // or forgotten with nobody to tell whose it was.
    let mut within = 0;
    for piece in transcript.pieces(stream, 0) {
        if piece.at >= place {
            break;
        }
        let here = (piece.bytes.len() as u64).min(place - piece.at);
        within = piece.within + here;
    }
    within
}

impl Digest {
    /// All of a stream if it fits, and otherwise its beginning and its end, cut
    /// between lines where there are lines.
    pub(super) fn of(transcript: &Transcript, stream: Option<Stream>, most: usize) -> Self {
        let total = transcript.total(stream);
        let whole = Page::of(transcript, stream, 0, most, true);
        if !whole.more && whole.missed == 0 {
            return Digest {
                head: whole.bytes,
                cut: None,
                tail: Vec::new(),
            };
        }
        let mut head = beginning(transcript, stream, most / 2);
        let tail = ending(transcript, stream, most - most / 2, total);
        let dropped = match memchr::memrchr(b'\n', &head.bytes) {
            Some(end) if end >= head.bytes.len() / 2 => head.bytes.len() - end - 1,
            _ => unfinished(&head.bytes),
        };
        head.give_back(dropped);
        let (head, from) = (head.bytes, head.behind);
        let begin = match memchr::memchr(b'\n', &tail) {
            Some(end) if end < tail.len() / 2 => end + 1,
            _ => (0..tail.len().min(4))
                .find(|index| !is_continuation(tail[*index]))
                .unwrap_or(0),
        };
        let tail = tail[begin..].to_vec();
        let bytes = total - head.len() as u64 - tail.len() as u64;
        Digest {
            head,
            cut: Some(Cut { bytes, from }),
            tail,
        }
    }
}

/// The first bytes without a hole.
fn beginning(transcript: &Transcript, stream: Option<Stream>, most: usize) -> Run {
    let mut run = Run::from(0);
    for piece in transcript.pieces(stream, 0) {
        let room = most - run.bytes.len();
        if room == 0 || piece.within != run.bytes.len() as u64 {
            break;
        }
        let taken = piece.bytes.len().min(room);
        run.take(piece.at, &piece.bytes[..taken]);
    }
    run
}

/// The last bytes without a hole.
fn ending(transcript: &Transcript, stream: Option<Stream>, most: usize, total: u64) -> Vec<u8> {
    let begin = total.saturating_sub(most as u64);
    let mut bytes: Vec<u8> = Vec::new();
    let mut expected = begin;
    for piece in transcript.pieces(stream, 0) {
        let end = piece.within + piece.bytes.len() as u64;
        if end <= begin {
            continue;
        }
        if piece.within > expected {
            bytes.clear();
        }
        let skipped = usize::try_from(begin.saturating_sub(piece.within)).unwrap_or(usize::MAX);
        bytes.extend_from_slice(&piece.bytes[skipped..]);
        expected = end;
    }
    bytes
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3);
    for (before, byte) in last.enumerate() {
        let needs = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ if is_continuation(*byte) => continue,
            _ => return 0,
        };
        let has = before + 1;
        return if has < needs { has } else { 0 };
    }
    0
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::serve::transcript::Keep;

    const ALL: Keep = Keep {
        head: 1 << 20,
        tail: 1 << 20,
        chunks: 10_000,
    };

    fn transcript(keep: Keep, writes: &[(Stream, &[u8])]) -> Transcript {
        let mut transcript = Transcript::new(keep);
        for (stream, bytes) in writes {
            transcript.append(*stream, bytes);
        }
        transcript
    }

    const EITHER: [Option<Stream>; 3] = [None, Some(Stream::Stdout), Some(Stream::Stderr)];

    /// Writes of two streams, some of which end within a character.
    fn writes(text: &'static str) -> impl Strategy<Value = Vec<(Stream, Vec<u8>)>> {
        let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
        let write = (stream, text, any::<prop::sample::Index>());
        prop::collection::vec(write, 0..30).prop_map(|writes| {
            let mut all = Vec::new();
            // What was cut off a write comes with the next one of its stream.
            let mut rest = [Vec::new(), Vec::new()];
            for (stream, text, at) in writes {
                let rest = &mut rest[usize::from(stream == Stream::Stderr)];
                let mut bytes = std::mem::take(rest);
                bytes.extend_from_slice(text.as_bytes());
                *rest = bytes.split_off(at.index(bytes.len() + 1));
                all.push((stream, bytes));
            }
            let [stdout, stderr] = rest;
            all.extend([(Stream::Stdout, stdout), (Stream::Stderr, stderr)]);
            all
        })
    }

    fn written(writes: &[(Stream, Vec<u8>)], of: Option<Stream>) -> (Transcript, Vec<u8>) {
        let mut transcript = Transcript::new(ALL);
        let mut wanted = Vec::new();
        for (stream, bytes) in writes {
            transcript.append(*stream, bytes);
            if of.is_none_or(|of| of == *stream) {
                wanted.extend_from_slice(bytes);
            }
        }
        (transcript, wanted)
    }

    proptest! {
        #[test]
        fn pages_put_together_are_the_whole(
            writes in writes("\\PC{0,20}"),
            of in prop::sample::select(&EITHER),
            most in 4_usize..50,
        ) {
            let (transcript, wanted) = written(&writes, of);
            let (mut read, mut cursor) = (Vec::new(), 0);
            loop {
                let page = Page::of(&transcript, of, cursor, most, true);
                prop_assert!(page.bytes.len() <= most);
                // No character is taken apart, unless the other stream came between.
                if of.is_some() {
                    prop_assert!(std::str::from_utf8(&page.bytes).is_ok());
                }
                prop_assert_eq!(page.missed, 0);
                read.extend_from_slice(&page.bytes);
                cursor = page.next;
                if !page.more {
                    break;
                }
                prop_assert!(!page.bytes.is_empty(), "it goes on");
            }
            prop_assert_eq!(read, wanted);
            prop_assert_eq!(cursor, transcript.end());
        }

        #[test]
        fn no_page_has_a_hole_in_it(
            writes in prop::collection::vec((any::<bool>(), 1_usize..5000, "\\PC{1,3}"), 0..60),
            of in prop::sample::select(&EITHER),
            most in 100_usize..20_000,
        ) {
            let keep = Keep { head: 1001, tail: 10_000, chunks: 20 };
            let mut transcript = Transcript::new(keep);
            let mut written = Vec::new();
            for (stderr, count, text) in &writes {
                let stream = if *stderr { Stream::Stderr } else { Stream::Stdout };
                let bytes = text.repeat(*count).into_bytes();
                transcript.append(stream, &bytes);
                if of.is_none_or(|of| of == stream) {
                    written.extend_from_slice(&bytes);
                }
            }
            let (mut at, mut cursor) = (0, 0);
            loop {
                let page = Page::of(&transcript, of, cursor, most, true);
                at += usize::try_from(page.missed).unwrap();
                let end = at + page.bytes.len();
                prop_assert_eq!(&written[at..end], &page.bytes[..]);
                at = end;
                if !page.more {
                    break;
                }
                prop_assert!(!page.bytes.is_empty(), "it goes on");
                cursor = page.next;
            }
            prop_assert_eq!(at, written.len());
        }

        #[test]
        fn a_digest_and_what_its_cursor_gives_are_the_whole(
            writes in writes("([a-z]{0,30}\n|ä){0,6}"),
            of in prop::sample::select(&EITHER),
            most in 40_usize..400,
        ) {
            let (transcript, wanted) = written(&writes, of);
            let digest = Digest::of(&transcript, of, most);
            prop_assert!(digest.head.len() + digest.tail.len() <= most);
            let mut whole = digest.head.clone();
            if let Some(cut) = digest.cut {
                let page = Page::of(&transcript, of, cut.from, usize::MAX, true);
                prop_assert_eq!(page.missed, 0);
                let count = usize::try_from(cut.bytes).unwrap();
                whole.extend_from_slice(&page.bytes[..count]);
                prop_assert_eq!(&page.bytes[count..], &digest.tail);
            }
            whole.extend_from_slice(&digest.tail);
            prop_assert_eq!(whole, wanted);
        }
    }

    #[test]
    fn streams_are_told_apart_or_come_as_they_were_written() {
        let writes: [(Stream, &[u8]); 3] = [
            (Stream::Stdout, b"one "),
            (Stream::Stderr, b"two "),
            (Stream::Stdout, b"three"),
        ];
        let transcript = transcript(ALL, &writes);
        let text = |stream| Page::of(&transcript, stream, 0, 100, true).bytes;
        assert_eq!(text(None), b"one two three");
        assert_eq!(text(Some(Stream::Stdout)), b"one three");
        assert_eq!(text(Some(Stream::Stderr)), b"two ");
        let after = Page::of(&transcript, Some(Stream::Stdout), 4, 100, true);
        assert_eq!((after.bytes.as_slice(), after.missed), (&b"three"[..], 0));
    }

    #[test]
    fn what_is_forgotten_is_told() {
        let keep = Keep {
            head: 4,
            tail: 8 * 1024,
            chunks: 100,
        };
        let flood = [b'x'; 100_000];
        let transcript = transcript(keep, &[(Stream::Stdout, &flood)]);
        let page = Page::of(&transcript, None, 0, 200_000, true);
        assert_eq!((page.bytes.len(), page.missed), (4, 0));
        assert_eq!((page.next, page.more), (4, true));
        let page = Page::of(&transcript, None, page.next, 200_000, true);
        assert_eq!(page.bytes.len() as u64 + page.missed, 100_000 - 4);
        assert!(page.missed > 80_000 && !page.more);
        let digest = Digest::of(&transcript, None, 1000);
        assert_eq!((digest.head.len(), digest.tail.len()), (4, 500));
        assert_eq!(digest.cut.unwrap().bytes, 100_000 - 504);
        assert_eq!(digest.cut.unwrap().from, 4);
    }

    #[test]
    fn half_a_character_waits_for_the_other_half() {
        let euro = "€".as_bytes();
        let mut transcript = transcript(
            ALL,
            &[(Stream::Stdout, b"5 "), (Stream::Stdout, &euro[..2])],
        );
        let page = Page::of(&transcript, None, 0, 100, false);
        assert_eq!((page.bytes.as_slice(), page.next), (&b"5 "[..], 2));
        transcript.append(Stream::Stdout, &euro[2..]);
        let page = Page::of(&transcript, None, 2, 100, false);
        assert_eq!((page.bytes.as_slice(), page.next), (euro, 5));
    }

    #[test]
    fn a_digest_is_cut_between_lines() {
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let transcript = transcript(ALL, &[(Stream::Stdout, lines.as_bytes())]);
        let digest = Digest::of(&transcript, None, 100);
        assert!(digest.head.ends_with(b"\n") && digest.head.starts_with(b"line 0\n"));
        assert!(digest.tail.starts_with(b"line ") && digest.tail.ends_with(b"line 999\n"));
    }
}
