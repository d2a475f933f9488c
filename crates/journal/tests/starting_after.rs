//! Logs that start after an earlier event.

use bytes::Bytes;
use outpost_journal::{Event, Exit, Journal, Limits, OutputEnd, Seq, Stream};

fn numbers(journal: &Journal, cursor: u64) -> Vec<(u64, &'static str)> {
    let kind = |event: &Event| match event {
        Event::Output(_) => "output",
        Event::Exited { .. } => "exited",
        Event::Closed { .. } => "closed",
    };
    journal
        .events_after(Seq(cursor))
        .map(|event| (event.seq().0, kind(&event)))
        .collect()
}

const EXIT: Exit = Exit {
    code: 3,
    sandbox_denied: false,
    ended_by: None,
    usage: None,
};

#[test]
fn numbering_continues_after_the_start() {
    let mut journal = Journal::starting_after(Limits::default(), Seq(7));
    assert!(!journal.has_after(Seq(7)));
    journal.attach(Seq(7));
    journal.output(Stream::Stdout, Bytes::from_static(b"x"));
    journal.skip();
    journal.exited(EXIT);
    journal.close(OutputEnd::Whole);
    assert_eq!(
        numbers(&journal, 0),
        [(8, "output"), (10, "exited"), (11, "closed")]
    );
    assert_eq!(journal.next_seq(), Seq(12));
}

#[test]
fn earlier_exit_gets_the_last_number_before_the_start() {
    let mut journal = Journal::starting_after(Limits::default(), Seq(7));
    journal.had_exited(EXIT);
    journal.output(Stream::Stdout, Bytes::from_static(b"late"));
    journal.close(OutputEnd::Whole);
    assert_eq!(journal.exit(), Some(EXIT));
    assert_eq!(
        numbers(&journal, 0),
        [(7, "exited"), (8, "output"), (9, "closed")]
    );
    assert_eq!(numbers(&journal, 7), [(8, "output"), (9, "closed")]);
}
