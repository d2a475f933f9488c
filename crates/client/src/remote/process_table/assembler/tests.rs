//! Events that arrive twice, late, in pieces or out of order are assembled as they happened, or a
//! lost range is reported.

use bytes::Bytes;
use outpost_protocol::{ReadChunk, Stream};
use proptest::prelude::*;

use super::*;

/// The events of a process, from number 1 on.
#[derive(Clone, Debug)]
struct History {
    events: Vec<UnnumberedEvent>,
}

impl History {
    /// `chunks` chunks of output, with the exit after the first `before` of them if `closed`.
    fn new(chunks: usize, before: usize, closed: bool) -> Self {
        let mut events: Vec<_> = (0..chunks)
            .map(|n| UnnumberedEvent::Output(Stream::Stdout, Bytes::from(format!("chunk {n}"))))
            .collect();
        if closed {
            let exit = Exit {
                code: 7,
                sandbox_denied: true,
            };
            events.insert(before.min(chunks), exit.into());
            events.push(UnnumberedEvent::Closed);
        }
        History { events }
    }

    /// The event as a server notifies it, with or without `sandbox_denied`.
    fn notified(&self, seq: u64, tells_denial: bool) -> UnnumberedEvent {
        match &self.events[seq as usize - 1] {
            UnnumberedEvent::Exited { code, .. } if !tells_denial => UnnumberedEvent::Exited {
                code: *code,
                sandbox_denied: None,
            },
            event => event.clone(),
        }
    }

    /// The response to a read when the first `now` events have happened and output up to
    /// `evicted` is no longer retained.
    fn page(&self, after: u64, now: usize, evicted: u64) -> ReadResult<Vec<u8>> {
        let happened = &self.events[..now];
        let numbered = (1_u64..).zip(happened);
        let chunks = numbered.clone().filter_map(|(seq, event)| match event {
            UnnumberedEvent::Output(_, bytes) if seq > after && seq > evicted => Some(ReadChunk {
                seq,
                stream: Stream::Stdout,
                chunk: bytes.to_vec(),
            }),
            _ => None,
        });
        let exit = happened.iter().find_map(|event| match event {
            UnnumberedEvent::Exited {
                code,
                sandbox_denied,
            } => Some((*code, *sandbox_denied)),
            _ => None,
        });
        ReadResult {
            chunks: chunks.collect(),
            next_seq: now as u64 + 1,
            exited: exit.is_some(),
            exit_code: exit.map(|(code, _)| code),
            closed: happened.contains(&UnnumberedEvent::Closed),
            failure: None,
            sandbox_denied: exit.is_some_and(|(_, denied)| denied == Some(true)),
        }
    }
}

fn histories() -> impl Strategy<Value = History> {
    (0_usize..12, 0_usize..12, any::<bool>())
        .prop_map(|(chunks, before, closed)| History::new(chunks, before, closed))
}

proptest! {
    #[test]
    fn events_in_any_order_are_assembled(
        history in histories(),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
        tells_denial: bool,
        space in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let mut assembler = EventAssembler::new(Seq::START, 40);
        let mut out = Vec::new();
        let last = history.events.len() as u64;
        for (index, has_space) in order.iter().zip(space) {
            if last > 0 {
                let seq = index.index(last as usize) as u64 + 1;
                assembler.insert(Seq(seq), history.notified(seq, tells_denial), has_space, &mut out);
                prop_assert_eq!(&out[..], &history.events[..out.len()], "in order, without duplicates");
                prop_assert_eq!(assembler.next(), Seq(out.len() as u64 + 1));
            }
        }
        // A read of the missing events completes the history.
        let after = assembler.missing_after().unwrap_or(assembler.next().previous());
        let page = history.page(after.0, history.events.len(), 0);
        prop_assert_eq!(assembler.insert_page(page, &mut out), Ok(()));
        prop_assert_eq!(&out, &history.events);
        prop_assert_eq!(assembler.missing_after(), None);
        prop_assert_eq!(assembler.is_closed(), history.events.contains(&UnnumberedEvent::Closed));
    }

    #[test]
    fn lost_output_is_reported(
        history in histories(),
        published in 0_usize..12,
        evicted in 0_u64..14,
    ) {
        let published = published.min(history.events.len());
        let mut assembler = EventAssembler::new(Seq::START, 1 << 20);
        let mut out = Vec::new();
        for seq in 1..=published as u64 {
            assembler.insert(Seq(seq), history.notified(seq, true), true, &mut out);
        }
        let page = history.page(published as u64, history.events.len(), evicted);
        let outcome = assembler.insert_page(page, &mut out);
        let lost = (1_u64..).zip(&history.events).any(|(seq, event)| {
            matches!(event, UnnumberedEvent::Output(..)) && seq > published as u64 && seq <= evicted
        });
        prop_assert_eq!(outcome.is_err(), lost, "{:?}", outcome);
        if !lost {
            prop_assert_eq!(&out, &history.events);
        }
    }

    #[test]
    fn attached_reader_starts_with_the_oldest_event(
        history in histories(),
        after in 0_u64..5,
        evicted in 0_u64..14,
        early in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut assembler = EventAssembler::attached(Seq(after), 1 << 20);
        let mut out = Vec::new();
        let count = history.events.len();
        // Events that arrive before the page are retained.
        let now = early.map_or(count, |index| index.index(count + 1));
        for seq in now as u64 + 1..=count as u64 {
            assembler.insert(Seq(seq), history.notified(seq, true), true, &mut out);
        }
        prop_assert!(out.is_empty(), "nothing before the first page");
        let evicted = evicted.min(now as u64);
        let outcome = assembler.insert_page(history.page(after, now, evicted), &mut out);
        if after <= now as u64 {
            prop_assert_eq!(outcome, Ok(()));
            // A page does not tell the position of the exit if the output around it is gone.
            let is_exit = |event: &UnnumberedEvent| matches!(event, UnnumberedEvent::Exited { .. });
            let rest = |events: &[UnnumberedEvent]| -> Vec<UnnumberedEvent> {
                events.iter().filter(|event| !is_exit(event)).cloned().collect()
            };
            prop_assert!(rest(&history.events).ends_with(&rest(&out)), "{:?}", out);
            let kept = rest(&history.events[now.min(evicted.max(after) as usize)..]);
            prop_assert!(rest(&out).len() >= kept.len(), "{:?}", out);
            let exited = out.iter().any(is_exit) || assembler.earlier_exit().is_some();
            prop_assert_eq!(exited, history.events.iter().any(is_exit));
        }
    }
}

#[test]
fn output_without_space_is_dropped() {
    let mut assembler = EventAssembler::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    let chunk = UnnumberedEvent::Output(Stream::Stdout, Bytes::from_static(b"x"));
    assembler.insert(Seq(1), chunk.clone(), false, &mut out);
    assert!(out.is_empty());
    assert_eq!(assembler.missing_after(), Some(Seq(0)), "it must be read");
    assembler.insert(Seq(2), chunk, true, &mut out);
    assert!(out.is_empty(), "the first is missing");
}

#[test]
fn buffered_events_are_bounded() {
    let mut assembler = EventAssembler::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    let exit = UnnumberedEvent::Exited {
        code: 0,
        sandbox_denied: None,
    };
    for seq in 0..2 * MAX_BUFFERED as u64 {
        assembler.insert(Seq(10 + seq), exit.clone(), true, &mut out);
    }
    assert_eq!(assembler.buffered.len(), MAX_BUFFERED);
    let chunk = UnnumberedEvent::Output(Stream::Stdout, Bytes::from_static(b"x"));
    assembler.insert(Seq(1), chunk, true, &mut out);
    assert_eq!(out.len(), 1, "the next event is accepted");
}

/// The server has more than fits a response: the page ends with a chunk although the process has
/// exited and closed.
#[test]
fn truncated_page_is_not_the_end() {
    let large = || vec![7; TRUNCATED_BYTES / 2];
    let chunk = |seq, chunk| ReadChunk {
        seq,
        stream: Stream::Stdout,
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
    for mut assembler in [
        EventAssembler::new(Seq::START, 1024),
        EventAssembler::attached(Seq::START, 1024),
    ] {
        let mut out = Vec::new();
        assembler
            .insert_page(
                page(vec![chunk(1, large()), chunk(2, large())], 3),
                &mut out,
            )
            .expect("nothing is missing");
        assert_eq!(out.len(), 2, "no exit and no close");
        assert_eq!(assembler.missing_after(), Some(Seq(2)), "there may be more");
        assembler
            .insert_page(page(vec![chunk(3, b"rest".to_vec())], 6), &mut out)
            .expect("nothing is missing");
        let exit = Exit {
            code: 3,
            sandbox_denied: false,
        };
        let rest = UnnumberedEvent::Output(Stream::Stdout, Bytes::from_static(b"rest"));
        assert_eq!(out[2..], [rest, exit.into(), UnnumberedEvent::Closed]);
        assert_eq!(assembler.missing_after(), None);
    }
}

/// Output after the exit can make the page that is truncated.
#[test]
fn exit_within_truncated_page_keeps_its_position() {
    let chunk = |seq, chunk| ReadChunk {
        seq,
        stream: Stream::Stdout,
        chunk,
    };
    let page = ReadResult {
        chunks: vec![
            chunk(1, vec![7; TRUNCATED_BYTES]),
            chunk(3, b"late".to_vec()),
        ],
        next_seq: 4,
        exited: true,
        exit_code: Some(3),
        closed: false,
        failure: None,
        sandbox_denied: false,
    };
    let mut assembler = EventAssembler::new(Seq::START, 1024);
    let mut out = Vec::new();
    assembler
        .insert_page(page, &mut out)
        .expect("nothing is missing");
    assert!(matches!(out[1], UnnumberedEvent::Exited { code: 3, .. }));
    assert_eq!(out.len(), 3);
}
