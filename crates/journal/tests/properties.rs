//! Compares the log with a model, over any interleaving of operations.

use bytes::Bytes;
use outpost_journal::{Event, Exit, Journal, Limits, OutputEnd, OwnerCursor, Seq, Stream};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    retain_bytes: 64,
    retain_chunks: 12,
    window_bytes: 48,
};

#[derive(Clone, Debug)]
enum Operation {
    Output(Stream, usize),
    Exit(i32),
    Close,
    Attach(u64),
    Advance(u64),
    Detach,
    Hold,
    Release,
    Read(u64, Option<usize>),
    Push,
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![
        Just(Stream::Stdout),
        Just(Stream::Stderr),
        Just(Stream::Pty)
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (stream(), 0_usize..40).prop_map(|(s, n)| Operation::Output(s, n)),
        1 => any::<i32>().prop_map(Operation::Exit),
        1 => Just(Operation::Close),
        1 => (0_u64..40).prop_map(Operation::Attach),
        3 => (0_u64..40).prop_map(Operation::Advance),
        1 => Just(Operation::Detach),
        1 => Just(Operation::Hold),
        1 => Just(Operation::Release),
        3 => ((0_u64..40), proptest::option::of(0_usize..80)).prop_map(|(a, m)| Operation::Read(a, m)),
        4 => Just(Operation::Push),
    ]
}

/// All events ever appended.
#[derive(Default)]
struct Model {
    events: Vec<Event>,
    exited: bool,
    closed: bool,
    /// The last event given to a pushing owner since it attached.
    pushed: Seq,
    /// The next number when the owner attached. Older output may have been
    /// evicted before, also around the exit, which never is.
    attached_at: Seq,
    /// While eviction is suspended: the oldest output when that began.
    held_from: Option<Option<Seq>>,
}

impl Model {
    fn next(&self) -> Seq {
        Seq(self.events.len() as u64 + 1)
    }

    fn output_bytes_after(&self, cursor: Seq) -> usize {
        self.events
            .iter()
            .filter(|event| event.seq() > cursor)
            .map(|event| match event {
                Event::Output(chunk) => chunk.bytes.len(),
                _ => 0,
            })
            .sum()
    }
}

fn first_kept(journal: &Journal) -> Option<Seq> {
    journal
        .page(Seq::START, None)
        .chunks
        .first()
        .map(|chunk| chunk.seq)
}

fn payload(seq: Seq, len: usize) -> Bytes {
    (0..len).map(|i| (seq.0 as usize + i) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_matches_the_model(
        retain_bytes in prop_oneof![2 => Just(LIMITS.retain_bytes), 1 => Just(10), 1 => Just(0)],
        operations in proptest::collection::vec(operation(), 1..120),
    ) {
        let mut journal = Journal::new(Limits { retain_bytes, ..LIMITS });
        let mut model = Model::default();
        for operation in operations {
            match operation {
                Operation::Output(stream, len) => {
                    // Like the actor, read only if there is space.
                    if model.closed || !journal.has_space() { continue; }
                    let bytes = payload(model.next(), len);
                    journal.output(stream, bytes.clone());
                    if len > 0 {
                        let seq = model.next();
                        model.events.push(Event::Output(outpost_journal::Chunk { seq, stream, bytes }));
                    }
                }
                Operation::Exit(code) => {
                    if model.exited || model.closed { continue; }
                    let exit = Exit { code, sandbox_denied: code % 2 == 0, ..Exit::default() };
                    journal.exited(exit);
                    let seq = model.next();
                    model.events.push(Event::Exited { seq, exit });
                    model.exited = true;
                }
                Operation::Close => {
                    if !model.exited || model.closed { continue; }
                    journal.close(OutputEnd::Whole);
                    let seq = model.next();
                    model.events.push(Event::Closed { seq, end: OutputEnd::Whole });
                    model.closed = true;
                }
                Operation::Attach(cursor) => {
                    journal.attach(Seq(cursor));
                    model.pushed = Seq(cursor).min(model.next().previous());
                    model.attached_at = model.next();
                    prop_assert_eq!(journal.owner(), OwnerCursor::Attached { cursor: model.pushed });
                }
                Operation::Advance(cursor) => {
                    // An owner acknowledges only events that it was given.
                    let cursor = Seq(cursor).min(model.pushed);
                    journal.advance(cursor);
                }
                Operation::Detach => journal.detach(),
                Operation::Hold => {
                    journal.hold();
                    model.held_from = Some(first_kept(&journal));
                }
                Operation::Release => {
                    journal.release();
                    model.held_from = None;
                }
                Operation::Push => {
                    if !journal.owner().is_attached() { continue; }
                    let events: Vec<_> = journal.events_after(model.pushed).take(3).collect();
                    for event in events {
                        // No gap once attached, unless it existed before.
                        let expected = &model.events[event.seq().0 as usize - 1];
                        prop_assert_eq!(&event, expected);
                        if event.seq() > model.attached_at {
                            prop_assert_eq!(event.seq(), model.pushed.next());
                        }
                        prop_assert!(event.seq() > model.pushed);
                        model.pushed = event.seq();
                    }
                }
                Operation::Read(after, max) => {
                    let after = Seq(after);
                    let page = journal.page(after, max);
                    let mut last = after;
                    for chunk in &page.chunks {
                        prop_assert!(chunk.seq > last);
                        last = chunk.seq;
                        prop_assert_eq!(&Event::Output(chunk.clone()), &model.events[chunk.seq.0 as usize - 1]);
                    }
                    let size: usize = page.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
                    if let Some(max) = max {
                        prop_assert!(page.chunks.len() <= 1 || size <= max);
                    }
                    match (max, page.chunks.last()) {
                        (Some(_), Some(chunk)) => prop_assert_eq!(page.next_seq, chunk.seq.next()),
                        _ => prop_assert_eq!(page.next_seq, model.next()),
                    }
                    prop_assert_eq!(page.closed, model.closed);
                    prop_assert_eq!(page.exit.is_some(), model.exited);
                    // A reader waits only if there is nothing to read.
                    if !page.chunks.is_empty() { prop_assert!(journal.has_unseen_for(after)); }
                }
            }

            // The log ends where the model ends, without gaps inside.
            prop_assert_eq!(journal.next_seq(), model.next());
            let kept: Vec<_> = journal.events_after(Seq::START).collect();
            let tail: Vec<_> = kept.iter().map(|event| event.seq().0).collect();
            let outputs: Vec<_> = kept.iter().filter(|e| matches!(e, Event::Output(_))).map(Event::seq).collect();
            let expected: Vec<_> = model.events.iter().filter(|e| matches!(e, Event::Output(_))).map(Event::seq).collect();
            prop_assert!(expected.ends_with(&outputs), "only the oldest output is evicted: {:?}", tail);
            prop_assert!(tail.is_sorted());

            // Memory is bounded; one chunk may exceed the limit.
            let retained = journal.retained_bytes() as usize;
            prop_assert!(retained <= retain_bytes + LIMITS.window_bytes + 40);
            if retain_bytes > 0 {
                prop_assert_eq!(outputs.last(), expected.last(), "the newest is always there");
            }

            if let Some(Some(oldest)) = model.held_from {
                prop_assert_eq!(first_kept(&journal), Some(oldest), "nothing goes while it is held");
            }
            prop_assert_eq!(
                journal.is_delivered(),
                model.closed && (!journal.owner().is_attached() || journal.owner().cursor() == model.next().previous())
            );

            if let OwnerCursor::Attached { cursor } = journal.owner() {
                // Everything after the owner's cursor is retained, unless it was evicted before
                // the owner attached.
                let unseen = model.output_bytes_after(cursor);
                let held: usize = journal.events_after(cursor).map(|event| match event { Event::Output(c) => c.bytes.len(), _ => 0 }).sum();
                prop_assert!(held <= unseen);
                if held >= LIMITS.window_bytes { prop_assert!(!journal.has_space()); }
            } else if model.held_from.is_none() {
                prop_assert!(journal.has_space());
                prop_assert!(retained <= retain_bytes || outputs.len() == 1 && retain_bytes > 0);
            }
        }
    }
}

#[test]
fn gap_shows_as_a_jump_in_numbers() {
    let mut journal = Journal::new(LIMITS);
    for _ in 0..20 {
        journal.output(Stream::Stdout, Bytes::from_static(b"0123456789"));
    }
    let first = journal.events_after(Seq(3)).next().map(|event| event.seq());
    assert_eq!(first, Some(Seq(15)), "64 bytes keep six chunks of ten");
}

#[test]
fn oversized_chunk_stays_until_the_next() {
    let mut journal = Journal::new(LIMITS);
    let sizes = |journal: &Journal| -> Vec<_> {
        let chunks = journal.page(Seq::START, None).chunks;
        chunks
            .iter()
            .map(|chunk| (chunk.seq.0, chunk.bytes.len()))
            .collect()
    };
    journal.output(Stream::Stdout, payload(Seq(1), 100));
    assert_eq!(sizes(&journal), [(1, 100)], "whole, as it was numbered");
    journal.output(Stream::Stdout, payload(Seq(2), 30));
    assert_eq!(sizes(&journal), [(2, 30)]);
    journal.output(Stream::Stdout, payload(Seq(3), 1000));
    assert_eq!(sizes(&journal), [(3, 1000)]);
    assert_eq!(journal.retained_bytes(), 1000);
}

#[test]
fn attached_owner_loses_no_output_and_exerts_backpressure() {
    let mut journal = Journal::new(LIMITS);
    journal.attach(Seq::START);
    let mut written = 0;
    while journal.has_space() {
        journal.output(Stream::Stdout, Bytes::from_static(b"0123456789"));
        written += 1;
    }
    assert_eq!(written, 5, "the window is 48 bytes");
    assert_eq!(journal.events_after(Seq::START).count(), 5);
    journal.advance(Seq(2));
    assert!(journal.has_space());
}

#[test]
fn single_byte_chunks_are_bounded_by_count() {
    let mut journal = Journal::new(LIMITS);
    for _ in 0..1000 {
        journal.output(Stream::Stderr, Bytes::from_static(b"x"));
    }
    assert_eq!(journal.page(Seq::START, None).chunks.len(), 12);
    journal.attach(Seq(1000));
    let mut written = 0;
    while journal.has_space() {
        journal.output(Stream::Stderr, Bytes::from_static(b"x"));
        written += 1;
    }
    assert_eq!(
        written, 12,
        "an owner lags by no more chunks than are retained"
    );
}

#[test]
fn exit_keeps_its_position_among_late_output() {
    let mut journal = Journal::new(LIMITS);
    journal.output(Stream::Stdout, Bytes::from_static(b"early"));
    journal.exited(Exit {
        code: 3,
        sandbox_denied: false,
        ..Exit::default()
    });
    journal.output(Stream::Stdout, Bytes::from_static(b"late"));
    journal.close(OutputEnd::Whole);
    let kinds: Vec<_> = journal
        .events_after(Seq::START)
        .map(|event| match event {
            Event::Output(chunk) => (chunk.seq.0, "output"),
            Event::Exited { seq, .. } => (seq.0, "exited"),
            Event::Closed { seq, .. } => (seq.0, "closed"),
        })
        .collect();
    assert_eq!(
        kinds,
        [(1, "output"), (2, "exited"), (3, "output"), (4, "closed")]
    );
}

#[test]
fn reader_waits_only_without_news() {
    let mut journal = Journal::new(LIMITS);
    assert!(!journal.has_unseen_for(Seq::START));
    journal.output(Stream::Stdout, Bytes::from_static(b"x"));
    assert!(journal.has_unseen_for(Seq::START));
    assert!(!journal.has_unseen_for(Seq(1)));
    journal.exited(Exit {
        code: 0,
        sandbox_denied: false,
        ..Exit::default()
    });
    assert!(journal.has_unseen_for(Seq(1)), "an exit not yet seen");
    assert!(!journal.has_unseen_for(Seq(2)), "an exit already seen");
    journal.close(OutputEnd::Whole);
    assert!(journal.has_unseen_for(Seq(99)), "a close never waits");
}

#[test]
fn maximum_limits_do_not_overflow() {
    let mut journal = Journal::new(Limits {
        retain_bytes: usize::MAX,
        retain_chunks: usize::MAX,
        window_bytes: usize::MAX,
    });
    journal.attach(Seq::START);
    journal.hold();
    journal.output(Stream::Stdout, Bytes::from_static(b"a"));
    assert!(journal.has_space());
    assert_eq!(journal.retained_bytes(), 1);
}
