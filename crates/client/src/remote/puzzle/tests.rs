//! A process whose events are told twice, late, in pieces and out of order is
//! put together as it was, or its hole is noticed.

use outpost_protocol::{ReadChunk, StreamName};
use proptest::prelude::*;

use super::*;

/// What really happened, from number 1 on.
#[derive(Clone, Debug)]
struct Truth {
    facts: Vec<Fact>,
}

impl Truth {
    /// So many chunks, with the exit behind the first `before` of them; closed or
    /// still open.
    fn new(chunks: usize, before: usize, closed: bool) -> Self {
        let mut facts: Vec<_> = (0..chunks)
            .map(|n| Fact::Output(Stream::Stdout, Bytes::from(format!("chunk {n}"))))
            .collect();
        if closed {
            let exit = Exit {
                code: 7,
                sandbox_denied: true,
            };
            facts.insert(before.min(chunks), Fact::Exited(exit));
            facts.push(Fact::Closed);
        }
        Truth { facts }
    }

    fn heard(&self, seq: u64, tells_denial: bool) -> Heard {
        match &self.facts[seq as usize - 1] {
            Fact::Output(stream, bytes) => Heard::Output(*stream, bytes.clone()),
            Fact::Exited(exit) => Heard::Exited {
                code: exit.code,
                sandbox_denied: tells_denial.then_some(exit.sandbox_denied),
            },
            Fact::Closed => Heard::Closed,
        }
    }

    /// What a read answers when the first `now` events have happened and output
    /// up to `evicted` is gone.
    fn page(&self, after: u64, now: usize, evicted: u64) -> ReadResult<Vec<u8>> {
        let happened = &self.facts[..now];
        let numbered = (1_u64..).zip(happened);
        let chunks = numbered.clone().filter_map(|(seq, fact)| match fact {
            Fact::Output(_, bytes) if seq > after && seq > evicted => Some(ReadChunk {
                seq,
                stream: StreamName::Stdout,
                chunk: bytes.to_vec(),
            }),
            _ => None,
        });
        let exit = happened.iter().find_map(|fact| match fact {
            Fact::Exited(exit) => Some(*exit),
            _ => None,
        });
        ReadResult {
            chunks: chunks.collect(),
            next_seq: now as u64 + 1,
            exited: exit.is_some(),
            exit_code: exit.map(|exit| exit.code),
            closed: happened.contains(&Fact::Closed),
            failure: None,
            sandbox_denied: exit.is_some_and(|exit| exit.sandbox_denied),
        }
    }
}

fn truths() -> impl Strategy<Value = Truth> {
    (0_usize..12, 0_usize..12, any::<bool>())
        .prop_map(|(chunks, before, closed)| Truth::new(chunks, before, closed))
}

proptest! {
    #[test]
    fn any_order_with_any_repetition_is_put_right(
        truth in truths(),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
        tells_denial: bool,
        room in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let mut puzzle = Puzzle::new(Seq::START, 40);
        let mut out = Vec::new();
        let last = truth.facts.len() as u64;
        for (index, room) in order.iter().zip(room) {
            if last > 0 {
                let seq = index.index(last as usize) as u64 + 1;
                puzzle.offer(Seq(seq), truth.heard(seq, tells_denial), room, &mut out);
                prop_assert_eq!(&out[..], &truth.facts[..out.len()], "in order, each once");
                prop_assert_eq!(puzzle.next(), Seq(out.len() as u64 + 1));
            }
        }
        // Reading what is missing completes it, whatever was heard before.
        let after = puzzle.wants().unwrap_or(puzzle.next().previous());
        let page = truth.page(after.0, truth.facts.len(), 0);
        prop_assert_eq!(puzzle.page(page, &mut out), Ok(()));
        prop_assert_eq!(&out, &truth.facts);
        prop_assert_eq!(puzzle.wants(), None);
        prop_assert_eq!(puzzle.is_closed(), truth.facts.contains(&Fact::Closed));
    }

    #[test]
    fn what_is_evicted_is_noticed_exactly(
        truth in truths(),
        published in 0_usize..12,
        evicted in 0_u64..14,
    ) {
        let published = published.min(truth.facts.len());
        let mut puzzle = Puzzle::new(Seq::START, 1 << 20);
        let mut out = Vec::new();
        for seq in 1..=published as u64 {
            puzzle.offer(Seq(seq), truth.heard(seq, true), true, &mut out);
        }
        let page = truth.page(published as u64, truth.facts.len(), evicted);
        let outcome = puzzle.page(page, &mut out);
        let lost = (1_u64..).zip(&truth.facts).any(|(seq, fact)| {
            matches!(fact, Fact::Output(..)) && seq > published as u64 && seq <= evicted
        });
        prop_assert_eq!(outcome.is_err(), lost, "{:?}", outcome);
        if !lost {
            prop_assert_eq!(&out, &truth.facts);
        }
    }

    #[test]
    fn who_comes_late_begins_with_the_oldest_that_is_there(
        truth in truths(),
        after in 0_u64..5,
        evicted in 0_u64..14,
        early in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut puzzle = Puzzle::adrift(Seq(after), 1 << 20);
        let mut out = Vec::new();
        let count = truth.facts.len();
        // Something may be pushed before the page has come; that isn't evicted.
        let now = early.map_or(count, |index| index.index(count + 1));
        for seq in now as u64 + 1..=count as u64 {
            puzzle.offer(Seq(seq), truth.heard(seq, true), true, &mut out);
        }
        prop_assert!(out.is_empty(), "nothing before it is known where it begins");
        let evicted = evicted.min(now as u64);
        let outcome = puzzle.page(truth.page(after, now, evicted), &mut out);
        if after <= now as u64 {
            prop_assert_eq!(outcome, Ok(()));
            // Where the exit stood isn't told if what was around it is gone.
            let is_exit = |fact: &Fact| matches!(fact, Fact::Exited(_));
            let rest = |facts: &[Fact]| -> Vec<Fact> {
                facts.iter().filter(|fact| !is_exit(fact)).cloned().collect()
            };
            prop_assert!(rest(&truth.facts).ends_with(&rest(&out)), "{:?}", out);
            let kept = rest(&truth.facts[now.min(evicted.max(after) as usize)..]);
            prop_assert!(rest(&out).len() >= kept.len(), "{:?}", out);
            let exited = out.iter().any(is_exit) || puzzle.earlier_exit().is_some();
            prop_assert_eq!(exited, truth.facts.iter().any(is_exit));
        }
    }
}

#[test]
fn nothing_without_room_is_kept() {
    let mut puzzle = Puzzle::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    let chunk = Heard::Output(Stream::Stdout, Bytes::from_static(b"x"));
    puzzle.offer(Seq(1), chunk.clone(), false, &mut out);
    assert!(out.is_empty());
    assert_eq!(puzzle.wants(), Some(Seq(0)), "it has to be read");
    puzzle.offer(Seq(2), chunk, true, &mut out);
    assert!(out.is_empty(), "the first one is missing");
}

#[test]
fn there_is_an_end_to_what_is_kept_aside() {
    let mut puzzle = Puzzle::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    let exit = Heard::Exited {
        code: 0,
        sandbox_denied: None,
    };
    for seq in 0..2 * MAX_ASIDE as u64 {
        puzzle.offer(Seq(10 + seq), exit.clone(), true, &mut out);
    }
    assert_eq!(puzzle.aside.len(), MAX_ASIDE);
    let chunk = Heard::Output(Stream::Stdout, Bytes::from_static(b"x"));
    puzzle.offer(Seq(1), chunk, true, &mut out);
    assert_eq!(out.len(), 1, "what has its turn is taken all the same");
}

/// A server has more than fits an answer: the page ends with a chunk, while the
/// process has long exited and closed.
#[test]
fn a_page_that_was_cut_short_is_not_the_end() {
    let large = || vec![7; CUT_BYTES / 2];
    let chunk = |seq, chunk| ReadChunk {
        seq,
        stream: StreamName::Stdout,
        chunk,
    };
    let page = |chunks, next_seq| ReadResult {
        chunks,
        next_seq,
        exited: true,
        exit_code: Some(3),
        closed: true,
        failure: None,
        sandbox_denied: false,
    };
    for mut puzzle in [
        Puzzle::new(Seq::START, 1024),
        Puzzle::adrift(Seq::START, 1024),
    ] {
        let mut out = Vec::new();
        puzzle
            .page(
                page(vec![chunk(1, large()), chunk(2, large())], 3),
                &mut out,
            )
            .expect("nothing is missing");
        assert_eq!(out.len(), 2, "no exit and no close");
        assert_eq!(puzzle.wants(), Some(Seq(2)), "there may be more");
        puzzle
            .page(page(vec![chunk(3, b"rest".to_vec())], 6), &mut out)
            .expect("nothing is missing");
        let exit = Exit {
            code: 3,
            sandbox_denied: false,
        };
        let rest = Fact::Output(Stream::Stdout, Bytes::from_static(b"rest"));
        assert_eq!(out[2..], [rest, Fact::Exited(exit), Fact::Closed]);
        assert_eq!(puzzle.wants(), None);
    }
}

/// What was written behind an exit can make a page that is cut there.
#[test]
fn an_exit_within_a_page_that_was_cut_short_has_its_place() {
    let chunk = |seq, chunk| ReadChunk {
        seq,
        stream: StreamName::Stdout,
        chunk,
    };
    let page = ReadResult {
        chunks: vec![chunk(1, vec![7; CUT_BYTES]), chunk(3, b"late".to_vec())],
        next_seq: 4,
        exited: true,
        exit_code: Some(3),
        closed: false,
        failure: None,
        sandbox_denied: false,
    };
    let mut puzzle = Puzzle::new(Seq::START, 1024);
    let mut out = Vec::new();
    puzzle.page(page, &mut out).expect("nothing is missing");
    assert!(matches!(out[1], Fact::Exited(exit) if exit.code == 3));
    assert_eq!(out.len(), 3);
}
