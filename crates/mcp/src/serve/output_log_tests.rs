use proptest::prelude::*;

use super::*;

const UNLIMITED: OutputRetention = OutputRetention {
    head: 1 << 20,
    tail: 1 << 20,
    chunks: 10_000,
};
const SMALL: OutputRetention = OutputRetention {
    head: 10,
    tail: 20_000,
    chunks: 8,
};
const SELECTIONS: [Option<Stream>; 3] = [None, Some(Stream::Stdout), Some(Stream::Stderr)];

fn log(retention: OutputRetention, writes: &[(Stream, &[u8])]) -> OutputLog {
    let mut log = OutputLog::new(retention);
    for (stream, bytes) in writes {
        log.append(*stream, bytes);
    }
    log
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

/// Generates writes to both streams, some of which end within a character.
fn writes(text: &'static str) -> impl Strategy<Value = Vec<(Stream, Vec<u8>)>> {
    let write = (stream(), text, any::<prop::sample::Index>());
    prop::collection::vec(write, 0..30).prop_map(|writes| {
        let mut all = Vec::new();
        // The rest of a cut write is part of the next write to its stream.
        let mut rests = [Vec::new(), Vec::new()];
        for (stream, text, at) in writes {
            let rest = &mut rests[usize::from(stream == Stream::Stderr)];
            let mut bytes = std::mem::take(rest);
            bytes.extend_from_slice(text.as_bytes());
            *rest = bytes.split_off(at.index(bytes.len() + 1));
            all.push((stream, bytes));
        }
        let [stdout, stderr] = rests;
        all.extend([(Stream::Stdout, stdout), (Stream::Stderr, stderr)]);
        all
    })
}

/// Returns the log of the writes, and the bytes of the selected stream.
fn written(
    retention: OutputRetention,
    writes: &[(Stream, Vec<u8>)],
    selected: Option<Stream>,
) -> (OutputLog, Vec<u8>) {
    let mut log = OutputLog::new(retention);
    let mut expected = Vec::new();
    for (stream, bytes) in writes {
        log.append(*stream, bytes);
        if selected.is_none_or(|selected| selected == *stream) {
            expected.extend_from_slice(bytes);
        }
    }
    (log, expected)
}

proptest! {
    #[test]
    fn retained_segments_match_the_written_bytes(
        writes in prop::collection::vec((stream(), prop::collection::vec(any::<u8>(), 0..9000)), 0..40),
        cursor in 0_u64..200_000,
    ) {
        for selected in SELECTIONS {
            let (log, expected) = written(SMALL, &writes, selected);
            prop_assert_eq!(log.total(selected), expected.len() as u64);
            let mut last = cursor;
            for segment in log.segments(selected, cursor) {
                prop_assert!(segment.offset >= last, "in order, and not before the cursor");
                last = segment.offset + segment.bytes.len() as u64;
                let start = usize::try_from(segment.stream_offset).unwrap();
                prop_assert_eq!(&expected[start..start + segment.bytes.len()], segment.bytes);
            }
            prop_assert!(log.retained() <= 2 * (SMALL.head + SMALL.tail));
            if selected.is_none() {
                prop_assert_eq!(log.end(), expected.len() as u64);
                continue;
            }
            // Each stream retains at least its head and its last chunk.
            let retained: Vec<_> = log.segments(selected, 0).collect();
            let head = expected.len().min(SMALL.head);
            let retained_head: usize = retained.iter()
                .take_while(|segment| segment.stream_offset < head as u64)
                .map(|segment| segment.bytes.len()).sum();
            prop_assert!(retained_head >= head);
            if let Some(last) = retained.last() {
                let end = last.stream_offset + last.bytes.len() as u64;
                prop_assert_eq!(end, expected.len() as u64);
            }
        }
    }

    #[test]
    fn pages_add_up_to_the_output(
        writes in writes("\\PC{0,20}"),
        selected in prop::sample::select(&SELECTIONS),
        limit in 4_usize..50,
    ) {
        let (log, expected) = written(UNLIMITED, &writes, selected);
        let (mut read, mut cursor) = (Vec::new(), 0);
        loop {
            let page = OutputPage::read(&log, selected, cursor, limit, true);
            prop_assert!(page.bytes.len() <= limit);
            // Characters are not split, unless the other stream wrote in between.
            if selected.is_some() {
                prop_assert!(std::str::from_utf8(&page.bytes).is_ok());
            }
            prop_assert_eq!(page.missed, 0);
            read.extend_from_slice(&page.bytes);
            cursor = page.next;
            if !page.more {
                break;
            }
            prop_assert!(!page.bytes.is_empty(), "the cursor advances");
        }
        prop_assert_eq!(read, expected);
        prop_assert_eq!(cursor, log.end());
    }

    #[test]
    fn pages_are_contiguous_after_eviction(
        writes in prop::collection::vec((stream(), 1_usize..5000, "\\PC{1,3}"), 0..60),
        selected in prop::sample::select(&SELECTIONS),
        limit in 100_usize..20_000,
    ) {
        let retention = OutputRetention { head: 1001, tail: 10_000, chunks: 20 };
        let writes: Vec<_> = writes.into_iter()
            .map(|(stream, count, text)| (stream, text.repeat(count).into_bytes()))
            .collect();
        let (log, expected) = written(retention, &writes, selected);
        let (mut at, mut cursor) = (0, 0);
        loop {
            let page = OutputPage::read(&log, selected, cursor, limit, true);
            at += usize::try_from(page.missed).unwrap();
            let end = at + page.bytes.len();
            prop_assert_eq!(&expected[at..end], &page.bytes[..]);
            at = end;
            if !page.more {
                break;
            }
            prop_assert!(!page.bytes.is_empty(), "the cursor advances");
            cursor = page.next;
        }
        prop_assert_eq!(at, expected.len());
    }

    #[test]
    fn summary_and_its_gap_add_up_to_the_output(
        writes in writes("([a-z]{0,30}\n|ä){0,6}"),
        selected in prop::sample::select(&SELECTIONS),
        limit in 40_usize..400,
    ) {
        let (log, expected) = written(UNLIMITED, &writes, selected);
        let summary = OutputExcerpt::read(&log, selected, limit);
        prop_assert!(summary.head.len() + summary.tail.len() <= limit);
        let mut whole = summary.head.clone();
        if let Some(gap) = summary.gap {
            let page = OutputPage::read(&log, selected, gap.start, usize::MAX, true);
            prop_assert_eq!(page.missed, 0);
            let count = usize::try_from(gap.bytes).unwrap();
            whole.extend_from_slice(&page.bytes[..count]);
            prop_assert_eq!(&page.bytes[count..], &summary.tail);
        }
        whole.extend_from_slice(&summary.tail);
        prop_assert_eq!(whole, expected);
    }
}

#[test]
fn flood_on_one_stream_does_not_evict_the_other() {
    let mut log = OutputLog::new(SMALL);
    log.append(Stream::Stderr, b"a warning early on");
    log.append(Stream::Stdout, &[b'x'; 1_000_000]);
    let stderr = log.segments(Some(Stream::Stderr), 0);
    assert_eq!(stderr.map(|segment| segment.bytes.len()).sum::<usize>(), 18);
}

#[test]
fn alternating_tiny_writes_are_bounded() {
    let mut log = OutputLog::new(SMALL);
    for _ in 0..1000 {
        log.append(Stream::Stdout, b"o");
        log.append(Stream::Stderr, b"e");
    }
    assert!(log.chunks.len() <= 4 * SMALL.chunks);
    assert_eq!(log.end(), 2000);
}

#[test]
fn streams_are_read_alone_or_in_order_of_arrival() {
    let writes: [(Stream, &[u8]); 3] = [
        (Stream::Stdout, b"one "),
        (Stream::Stderr, b"two "),
        (Stream::Stdout, b"three"),
    ];
    let log = log(UNLIMITED, &writes);
    let read = |stream| OutputPage::read(&log, stream, 0, 100, true).bytes;
    assert_eq!(read(None), b"one two three");
    assert_eq!(read(Some(Stream::Stdout)), b"one three");
    assert_eq!(read(Some(Stream::Stderr)), b"two ");
    let after = OutputPage::read(&log, Some(Stream::Stdout), 4, 100, true);
    assert_eq!((after.bytes.as_slice(), after.missed), (&b"three"[..], 0));
}

#[test]
fn evicted_bytes_are_counted() {
    let retention = OutputRetention {
        head: 4,
        tail: 8 * 1024,
        chunks: 100,
    };
    let log = log(retention, &[(Stream::Stdout, &[b'x'; 100_000])]);
    let page = OutputPage::read(&log, None, 0, 200_000, true);
    assert_eq!((page.bytes.len(), page.missed), (4, 0));
    assert_eq!((page.next, page.more), (4, true));
    let page = OutputPage::read(&log, None, page.next, 200_000, true);
    assert_eq!(page.bytes.len() as u64 + page.missed, 100_000 - 4);
    assert!(page.missed > 80_000 && !page.more);
    let summary = OutputExcerpt::read(&log, None, 1000);
    assert_eq!((summary.head.len(), summary.tail.len()), (4, 500));
    assert_eq!(summary.gap.unwrap().bytes, 100_000 - 504);
    assert_eq!(summary.gap.unwrap().start, 4);
}

#[test]
fn incomplete_character_is_left_for_the_next_page() {
    let euro = "€".as_bytes();
    let mut log = log(
        UNLIMITED,
        &[(Stream::Stdout, b"5 "), (Stream::Stdout, &euro[..2])],
    );
    let page = OutputPage::read(&log, None, 0, 100, false);
    assert_eq!((page.bytes.as_slice(), page.next), (&b"5 "[..], 2));
    log.append(Stream::Stdout, &euro[2..]);
    let page = OutputPage::read(&log, None, 2, 100, false);
    assert_eq!((page.bytes.as_slice(), page.next), (euro, 5));
}

#[test]
fn summary_is_cut_at_line_boundaries() {
    let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let log = log(UNLIMITED, &[(Stream::Stdout, lines.as_bytes())]);
    let summary = OutputExcerpt::read(&log, None, 100);
    assert!(summary.head.ends_with(b"\n") && summary.head.starts_with(b"line 0\n"));
    assert!(summary.tail.starts_with(b"line ") && summary.tail.ends_with(b"line 999\n"));
}
