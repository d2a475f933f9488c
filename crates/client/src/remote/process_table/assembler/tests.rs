//! Events that arrive twice, late, in pieces or out of order are assembled as they happened, or a
//! lost range is reported.

use bytes::Bytes;
use outpost_protocol::{ReadChunk, Stream};
use proptest::prelude::*;

use super::*;

/// The events of a process, from number 1 on.
#[derive(Clone, Debug)]
struct History {
    events: Vec<Event>,
}

impl History {
    /// `chunks` chunks of output, with the exit after the first `before` of them if `closed`.
    fn new(chunks: usize, before: usize, closed: bool) -> Self {
        let mut events: Vec<_> = (0..chunks)
            .map(|n| output(0, Bytes::from(format!("chunk {n}"))))
            .collect();
        let seq = Seq::START;
        if closed {
            let exit = Exit {
                code: 7,
                sandbox_denied: true,
                ..Exit::default()
            };
            events.insert(before.min(chunks), Event::Exited { seq, exit });
            let end = OutputEnd::Whole;
            events.push(Event::Closed { seq, end });
        }
        for (number, event) in (1..).zip(&mut events) {
            match event {
                Event::Output(chunk) => chunk.seq = Seq(number),
                Event::Exited { seq, .. } | Event::Closed { seq, .. } => *seq = Seq(number),
            }
        }
        History { events }
    }

    /// Inserts the event as a server notifies it, with or without `sandbox_denied`.
    fn notify(
        &self,
        assembler: &mut EventAssembler,
        seq: u64,
        tells_denial: bool,
        has_space: bool,
        out: &mut Vec<Event>,
    ) {
        let mut event = self.events[seq as usize - 1].clone();
        let mut incomplete = false;
        if let Event::Exited { exit, .. } = &mut event
            && !tells_denial
        {
            exit.sandbox_denied = false;
            incomplete = true;
        }
        assembler.insert(event, incomplete, has_space, out);
    }

    /// The response to a read when the first `now` events have happened and output up to
    /// `evicted` is no longer retained.
    fn page(&self, after: u64, now: usize, evicted: u64) -> ReadResult<Vec<u8>> {
        let happened = &self.events[..now];
        let numbered = (1_u64..).zip(happened);
        let chunks = numbered.clone().filter_map(|(seq, event)| match event {
            Event::Output(chunk) if seq > after && seq > evicted => Some(ReadChunk {
                seq,
                stream: Stream::Stdout,
                chunk: chunk.bytes.to_vec(),
            }),
            _ => None,
        });
        let exit = happened.iter().find_map(|event| match event {
            Event::Exited { exit, .. } => Some(exit),
            _ => None,
        });
        ReadResult {
            chunks: chunks.collect(),
            next_seq: now as u64 + 1,
            exited: exit.is_some(),
            exit_code: exit.map(|exit| exit.code),
            closed: happened.iter().any(is_close),
            failure: None,
            sandbox_denied: exit.is_some_and(|exit| exit.sandbox_denied),
            ended_by: None,
            usage: None,
        }
    }
}

fn output(seq: u64, bytes: impl Into<Bytes>) -> Event {
    Event::Output(Chunk {
        seq: Seq(seq),
        stream: Stream::Stdout,
        bytes: bytes.into(),
    })
}

fn is_close(event: &Event) -> bool {
    matches!(event, Event::Closed { .. })
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
                history.notify(&mut assembler, seq, tells_denial, has_space, &mut out);
                prop_assert_eq!(&out[..], &history.events[..out.len()], "in order, without duplicates");
                prop_assert_eq!(assembler.next, Seq(out.len() as u64 + 1));
            }
        }
        // A read of the missing events completes the history.
        let after = assembler.missing_after().unwrap_or(assembler.next.previous());
        let page = history.page(after.0, history.events.len(), 0);
        prop_assert_eq!(assembler.insert_page(page, &mut out), Ok(()));
        prop_assert_eq!(&out, &history.events);
        prop_assert_eq!(assembler.missing_after(), None);
        prop_assert_eq!(assembler.closed, history.events.iter().any(is_close));
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
            history.notify(&mut assembler, seq, true, true, &mut out);
        }
        let page = history.page(published as u64, history.events.len(), evicted);
        let outcome = assembler.insert_page(page, &mut out);
        let lost = (1_u64..).zip(&history.events).any(|(seq, event)| {
            matches!(event, Event::Output(_)) && seq > published as u64 && seq <= evicted
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
            history.notify(&mut assembler, seq, true, true, &mut out);
        }
        prop_assert!(out.is_empty(), "nothing before the first page");
        let evicted = evicted.min(now as u64);
        let outcome = assembler.insert_page(history.page(after, now, evicted), &mut out);
        if after <= now as u64 {
            prop_assert_eq!(outcome, Ok(()));
            // A page does not tell the position of the exit if the output around it is gone.
            let is_exit = |event: &Event| matches!(event, Event::Exited { .. });
            let rest = |events: &[Event]| -> Vec<Event> {
                events.iter().filter(|event| !is_exit(event)).cloned().collect()
            };
            prop_assert!(rest(&history.events).ends_with(&rest(&out)), "{:?}", out);
            let kept = rest(&history.events[now.min(evicted.max(after) as usize)..]);
            prop_assert!(rest(&out).len() >= kept.len(), "{:?}", out);
            let exited = out.iter().any(is_exit) || assembler.earlier_exit.is_some();
            prop_assert_eq!(exited, history.events.iter().any(is_exit));
        }
    }
}

#[test]
fn output_without_space_is_dropped() {
    let mut assembler = EventAssembler::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    assembler.insert(output(1, "x"), false, false, &mut out);
    assert!(out.is_empty());
    assert_eq!(assembler.missing_after(), Some(Seq(0)), "it must be read");
    assembler.insert(output(2, "x"), false, true, &mut out);
    assert!(out.is_empty(), "the first is missing");
}

#[test]
fn buffered_events_are_bounded() {
    let mut assembler = EventAssembler::new(Seq::START, 1 << 20);
    let mut out = Vec::new();
    let exit = Exit {
        code: 0,
        sandbox_denied: false,
        ..Exit::default()
    };
    for seq in 0..2 * MAX_BUFFERED as u64 {
        let seq = Seq(10 + seq);
        assembler.insert(Event::Exited { seq, exit }, true, true, &mut out);
    }
    assert_eq!(assembler.buffered.len(), MAX_BUFFERED);
    assembler.insert(output(1, "x"), false, true, &mut out);
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
        ended_by: None,
        usage: None,
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
            ..Exit::default()
        };
        let exited = Event::Exited { seq: Seq(4), exit };
        let closed = Event::Closed {
            seq: Seq(5),
            end: OutputEnd::Whole,
        };
        assert_eq!(out[2..], [output(3, "rest"), exited, closed]);
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
        ended_by: None,
        usage: None,
    };
    let mut assembler = EventAssembler::new(Seq::START, 1024);
    let mut out = Vec::new();
    assembler
        .insert_page(page, &mut out)
        .expect("nothing is missing");
    assert!(matches!(out[1], Event::Exited { exit, .. } if exit.code == 3));
    assert_eq!(out.len(), 3);
}
