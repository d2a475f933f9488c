//! What a process has written, in the order it was written. Pure: pages go in,
//! and what is to be shown comes out.

use outpost_client::{Chunk, Page, ProcessEntry};

/// Something to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes at the beginning are no longer retained.
    LostBefore(u64),
    /// Something in the middle was gone before it was read.
    LostHere,
    /// Output.
    Output(Chunk),
}

/// A reader's way through the output of a process.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// What was known of the process before the first page.
    known_next: u64,
    known_bytes: u64,
    /// The last event that was heard of.
    after: u64,
    /// What came of the beginning, until it is clear how much of it is missing.
    held: Option<Vec<Chunk>>,
    /// The number of the exit was passed: it is no output, and not in the pages.
    exit_passed: bool,
    finished: bool,
    follow: bool,
}

impl Transcript {
    /// A transcript of what is retained now, or of everything until the close.
    pub(crate) fn new(entry: &ProcessEntry, follow: bool) -> Self {
        Transcript {
            known_next: entry.next_seq,
            known_bytes: entry.bytes_out,
            after: 0,
            held: Some(Vec::new()),
            exit_passed: false,
            finished: false,
            follow,
        }
    }

    /// Behind which event to read on; none when all was read that there is.
    pub(crate) fn next(&self) -> Option<u64> {
        (!self.finished).then_some(self.after)
    }

    /// A page came; says what is to be shown of it.
    pub(crate) fn take(&mut self, page: Page) -> Vec<Piece> {
        let nothing_new = page.chunks.is_empty();
        let exited = page.exit.is_some();
        let caught_up = page.next_seq >= self.known_next;
        self.finished = match self.follow {
            true => page.closed && nothing_new,
            false => nothing_new || caught_up,
        };
        let before = self.after;
        self.after = page.next_seq.saturating_sub(1).max(before);
        let Some(mut held) = self.held.take() else {
            return self.continued(page.chunks, before, exited);
        };
        held.extend(page.chunks);
        let whole = held.first().is_some_and(|first| first.seq == 1);
        if !whole && !caught_up && !nothing_new {
            self.held = Some(held);
            return Vec::new();
        }
        let known = held.iter().filter(|chunk| chunk.seq < self.known_next);
        let kept: u64 = known.map(|chunk| chunk.bytes.len() as u64).sum();
        // One that begins at the beginning has lost nothing, and may go on in
        // pages that haven't come yet.
        let lost = if whole {
            0
        } else {
            self.known_bytes.saturating_sub(kept)
        };
        let start = held.first().map_or(before, |first| first.seq - 1);
        let mut pieces = Vec::new();
        if lost > 0 {
            pieces.push(Piece::LostBefore(lost));
        }
        pieces.extend(self.continued(held, start, exited));
        pieces
    }

    /// Output behind an event, and whether anything is missing in between.
    fn continued(&mut self, chunks: Vec<Chunk>, after: u64, exited: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut last = after;
        for chunk in chunks {
            let missing = chunk.seq.saturating_sub(last + 1);
            let is_exit = missing == 1 && exited && !self.exit_passed;
            self.exit_passed |= is_exit;
            if missing > 0 && !is_exit {
                pieces.push(Piece::LostHere);
            }
            last = chunk.seq;
            pieces.push(Piece::Output(chunk));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use outpost_client::{Exit, StreamName};

    use super::*;

    fn entry(next_seq: u64, bytes_out: u64) -> ProcessEntry {
        serde_json::from_value(serde_json::json!({
            "processId": "p", "pid": 1, "argv": ["x"], "cwd": "file:///", "tty": false,
            "startedAtMs": 0, "state": "running", "exitCode": null,
            "nextSeq": next_seq, "bytesOut": bytes_out
        }))
        .unwrap()
    }

    /// A page with chunks of ten bytes.
    fn page(seqs: &[u64], next_seq: u64) -> Page {
        let chunks = seqs.iter().map(|seq| Chunk {
            seq: *seq,
            stream: StreamName::Stdout,
            bytes: "0123456789".into(),
        });
        Page {
            chunks: chunks.collect(),
            next_seq,
            exit: None,
            closed: false,
            failure: None,
        }
    }

    fn ended(page: Page) -> Page {
        Page {
            exit: Some(Exit {
                code: 0,
                sandbox_denied: false,
            }),
            closed: true,
            ..page
        }
    }

    /// What is shown, in short.
    fn shown(transcript: &mut Transcript, page: Page) -> Vec<String> {
        let pieces = transcript.take(page).into_iter();
        let short = pieces.map(|piece| match piece {
            Piece::LostBefore(bytes) => format!("-{bytes}"),
            Piece::LostHere => "-".to_owned(),
            Piece::Output(chunk) => chunk.seq.to_string(),
        });
        short.collect()
    }

    #[test]
    fn everything_that_is_there_and_then_the_end() {
        let mut transcript = Transcript::new(&entry(4, 30), false);
        assert_eq!(shown(&mut transcript, page(&[1, 2], 3)), ["1", "2"]);
        assert_eq!(transcript.next(), Some(2));
        assert_eq!(shown(&mut transcript, page(&[3], 4)), ["3"]);
        assert_eq!(transcript.next(), None);
    }

    #[test]
    fn one_that_keeps_writing_is_not_followed_unless_asked_for() {
        let mut transcript = Transcript::new(&entry(3, 20), false);
        shown(&mut transcript, page(&[1, 2, 3, 4], 5));
        assert_eq!(transcript.next(), None);
        let mut following = Transcript::new(&entry(3, 20), true);
        shown(&mut following, page(&[1, 2, 3, 4], 5));
        assert_eq!(following.next(), Some(4));
        shown(&mut following, ended(page(&[5], 6)));
        assert_eq!(following.next(), Some(5), "there may be more");
        shown(&mut following, ended(page(&[], 8)));
        assert_eq!(following.next(), None);
    }

    #[test]
    fn how_much_is_missing_is_said_before_the_rest() {
        let mut transcript = Transcript::new(&entry(7, 60), false);
        assert!(shown(&mut transcript, page(&[4], 5)).is_empty());
        assert_eq!(
            shown(&mut transcript, page(&[5, 6], 7)),
            ["-30", "4", "5", "6"]
        );
        assert_eq!(transcript.next(), None);
    }

    #[test]
    fn nothing_at_all_may_be_retained() {
        let mut transcript = Transcript::new(&entry(7, 60), false);
        assert_eq!(shown(&mut transcript, page(&[], 7)), ["-60"]);
        let mut silent = Transcript::new(&entry(1, 0), false);
        assert!(shown(&mut silent, page(&[], 1)).is_empty());
        assert_eq!(silent.next(), None);
    }

    #[test]
    fn a_follower_that_is_too_slow_hears_of_it_and_goes_on() {
        let mut transcript = Transcript::new(&entry(3, 20), true);
        assert_eq!(shown(&mut transcript, page(&[1, 2], 3)), ["1", "2"]);
        assert_eq!(shown(&mut transcript, page(&[7, 8], 9)), ["-", "7", "8"]);
    }

    #[test]
    fn the_exit_has_a_number_and_is_not_missing() {
        let mut transcript = Transcript::new(&entry(5, 20), true);
        assert_eq!(shown(&mut transcript, ended(page(&[1, 3], 4))), ["1", "3"]);
        let mut late = Transcript::new(&entry(4, 10), true);
        assert_eq!(shown(&mut late, ended(page(&[2], 3))), [""; 0]);
        assert_eq!(shown(&mut late, ended(page(&[], 4))), ["2"]);
    }
}
