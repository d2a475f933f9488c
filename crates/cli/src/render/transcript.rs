//! Puts the output of a process in order. Pure: takes pages, returns what to show.

use outpost_client::{Chunk, Page, ProcessEntry};

/// An item to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The first so many bytes are no longer retained.
    LostBefore(u64),
    /// Output in the middle was evicted before it was read.
    LostHere,
    Output(Chunk),
}

/// A reader's position in the output of a process.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// State of the process before the first page.
    known_next: u64,
    known_bytes: u64,
    /// Number of the last event that was read.
    after: u64,
    /// The first chunks, until it is known how much is missing before them.
    held: Option<Vec<Chunk>>,
    /// Whether the number of the exit was passed; pages contain only output.
    exit_passed: bool,
    finished: bool,
    follow: bool,
}

impl Transcript {
    /// A transcript of the retained output, or of everything until `closed`.
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

    /// The event after which to read on; none at the end.
    pub(crate) fn next(&self) -> Option<u64> {
        (!self.finished).then_some(self.after)
    }

    /// Adds a page, and returns what to show of it.
    pub(crate) fn add(&mut self, page: Page) -> Vec<Item> {
        let nothing_new = page.chunks.is_empty();
        let exited = page.exit.is_some();
        let caught_up = page.next_seq >= self.known_next;
        self.finished = if self.follow {
            page.closed && nothing_new
        } else {
            nothing_new || caught_up
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
        // A transcript that begins with the first event has lost nothing; more pages may follow.
        let lost = if whole {
            0
        } else {
            self.known_bytes.saturating_sub(kept)
        };
        let start = held.first().map_or(before, |first| first.seq - 1);
        let mut items = Vec::new();
        if lost > 0 {
            items.push(Item::LostBefore(lost));
        }
        items.extend(self.continued(held, start, exited));
        items
    }

    /// Output after an event, with gaps marked.
    fn continued(&mut self, chunks: Vec<Chunk>, after: u64, exited: bool) -> Vec<Item> {
        let mut items = Vec::new();
        let mut last = after;
        for chunk in chunks {
            let missing = chunk.seq.saturating_sub(last + 1);
            let is_exit = missing == 1 && exited && !self.exit_passed;
            self.exit_passed |= is_exit;
            if missing > 0 && !is_exit {
                items.push(Item::LostHere);
            }
            last = chunk.seq;
            items.push(Item::Output(chunk));
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use outpost_client::{Exit, Stream};

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
            stream: Stream::Stdout,
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
                ..Exit::default()
            }),
            closed: true,
            ..page
        }
    }

    /// A compact form of the items.
    fn shown(transcript: &mut Transcript, page: Page) -> Vec<String> {
        let items = transcript.add(page).into_iter();
        let short = items.map(|item| match item {
            Item::LostBefore(bytes) => format!("-{bytes}"),
            Item::LostHere => "-".to_owned(),
            Item::Output(chunk) => chunk.seq.to_string(),
        });
        short.collect()
    }

    #[test]
    fn complete_output_is_shown_until_the_end() {
        let mut transcript = Transcript::new(&entry(4, 30), false);
        assert_eq!(shown(&mut transcript, page(&[1, 2], 3)), ["1", "2"]);
        assert_eq!(transcript.next(), Some(2));
        assert_eq!(shown(&mut transcript, page(&[3], 4)), ["3"]);
        assert_eq!(transcript.next(), None);
    }

    #[test]
    fn later_output_is_shown_only_when_following() {
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
    fn missing_bytes_are_reported_first() {
        let mut transcript = Transcript::new(&entry(7, 60), false);
        assert!(shown(&mut transcript, page(&[4], 5)).is_empty());
        assert_eq!(
            shown(&mut transcript, page(&[5, 6], 7)),
            ["-30", "4", "5", "6"]
        );
        assert_eq!(transcript.next(), None);
    }

    #[test]
    fn output_may_be_evicted_completely() {
        let mut transcript = Transcript::new(&entry(7, 60), false);
        assert_eq!(shown(&mut transcript, page(&[], 7)), ["-60"]);
        let mut silent = Transcript::new(&entry(1, 0), false);
        assert!(shown(&mut silent, page(&[], 1)).is_empty());
        assert_eq!(silent.next(), None);
    }

    #[test]
    fn slow_follower_sees_a_gap_and_continues() {
        let mut transcript = Transcript::new(&entry(3, 20), true);
        assert_eq!(shown(&mut transcript, page(&[1, 2], 3)), ["1", "2"]);
        assert_eq!(shown(&mut transcript, page(&[7, 8], 9)), ["-", "7", "8"]);
    }

    #[test]
    fn exit_event_is_not_a_gap() {
        let mut transcript = Transcript::new(&entry(5, 20), true);
        assert_eq!(shown(&mut transcript, ended(page(&[1, 3], 4))), ["1", "3"]);
        let mut late = Transcript::new(&entry(4, 10), true);
        assert_eq!(shown(&mut late, ended(page(&[2], 3))), [""; 0]);
        assert_eq!(shown(&mut late, ended(page(&[], 4))), ["2"]);
    }
}
