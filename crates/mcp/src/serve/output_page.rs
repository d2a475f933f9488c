//! Pages and summaries of the retained output of a process.

use super::output_log::{OutputLog, Stream};

/// Contiguous output after a cursor. A page ends where output was evicted; the next page
/// starts after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputPage {
    pub(super) bytes: Vec<u8>,
    /// The cursor of the next page.
    pub(super) next: u64,
    /// Number of evicted bytes between the cursor and this page.
    pub(super) missed: u64,
    /// Whether more output is available.
    pub(super) more: bool,
}

/// The beginning and the end of output that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputSummary {
    pub(super) head: Vec<u8>,
    /// The omitted part between head and tail, if any.
    pub(super) gap: Option<OmittedOutput>,
    pub(super) tail: Vec<u8>,
}

/// An omitted part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OmittedOutput {
    pub(super) bytes: u64,
    /// The cursor at which the gap starts.
    pub(super) start: u64,
}

impl OutputPage {
    /// Reads at most `limit` bytes after `cursor`. If the output is `complete`, an incomplete
    /// character at its end is returned as it is; otherwise it is left for the next page.
    pub(super) fn read(
        log: &OutputLog,
        stream: Option<Stream>,
        cursor: u64,
        limit: usize,
        complete: bool,
    ) -> Self {
        let cursor = cursor.min(log.end());
        let mut expected = log.stream_offset_at(stream, cursor);
        let mut bytes = Vec::new();
        let (mut missed, mut more, mut at_gap) = (0, false, false);
        for segment in log.segments(stream, cursor) {
            let room = limit - bytes.len();
            at_gap = segment.stream_offset > expected && !bytes.is_empty();
            if room == 0 || at_gap {
                more = true;
                break;
            }
            missed += segment.stream_offset - expected;
            let taken = segment.bytes.len().min(room);
            bytes.extend_from_slice(&segment.bytes[..taken]);
            expected = segment.stream_offset + taken as u64;
            if taken < segment.bytes.len() {
                more = true;
                break;
            }
        }
        // The rest of a character before a gap was evicted.
        let incomplete = if (more || !complete) && !at_gap {
            incomplete_char_len(&bytes)
        } else {
            0
        };
        bytes.truncate(bytes.len() - incomplete);
        let next = if incomplete == 0 && !more {
            // Skips what the other stream wrote in the meantime.
            log.end()
        } else {
            cursor_after(log, stream, cursor, bytes.len())
        };
        OutputPage {
            bytes,
            next,
            missed,
            more,
        }
    }
}

impl OutputSummary {
    /// Returns the whole output if it fits into `limit` bytes. Otherwise returns its
    /// beginning and end, cut at line boundaries where possible.
    pub(super) fn read(log: &OutputLog, stream: Option<Stream>, limit: usize) -> Self {
        let whole = OutputPage::read(log, stream, 0, limit, true);
        if !whole.more && whole.missed == 0 {
            return OutputSummary {
                head: whole.bytes,
                gap: None,
                tail: Vec::new(),
            };
        }
        let beginning = OutputPage::read(log, stream, 0, limit / 2, true);
        // The beginning itself may have been evicted.
        let retained = beginning.missed == 0;
        let mut head = if retained {
            beginning.bytes
        } else {
            Vec::new()
        };
        let end = match memchr::memrchr(b'\n', &head) {
            Some(end) if end >= head.len() / 2 => end + 1,
            _ => head.len() - incomplete_char_len(&head),
        };
        head.truncate(end);
        let mut tail = last_bytes(log, stream, limit - limit / 2);
        let start = match memchr::memchr(b'\n', &tail) {
            Some(end) if end < tail.len() / 2 => end + 1,
            _ => (0..tail.len().min(4))
                .find(|index| !is_continuation(tail[*index]))
                .unwrap_or(0),
        };
        tail.drain(..start);
        let gap = OmittedOutput {
            bytes: log.total(stream) - head.len() as u64 - tail.len() as u64,
            start: cursor_after(log, stream, 0, head.len()),
        };
        OutputSummary {
            head,
            gap: Some(gap),
            tail,
        }
    }
}

/// Returns the cursor after the first `count` retained bytes from `cursor` on.
fn cursor_after(log: &OutputLog, stream: Option<Stream>, mut cursor: u64, count: usize) -> u64 {
    let mut left = count;
    for segment in log.segments(stream, cursor) {
        let taken = segment.bytes.len().min(left);
        cursor = segment.offset + taken as u64;
        left -= taken;
        if left == 0 {
            break;
        }
    }
    cursor
}

/// Returns the last bytes, from the last gap on.
pub(super) fn last_bytes(log: &OutputLog, stream: Option<Stream>, limit: usize) -> Vec<u8> {
    let start = log.total(stream).saturating_sub(limit as u64);
    let mut bytes: Vec<u8> = Vec::new();
    let mut expected = start;
    for segment in log.segments(stream, 0) {
        let end = segment.stream_offset + segment.bytes.len() as u64;
        if end <= start {
            continue;
        }
        if segment.stream_offset > expected {
            bytes.clear();
        }
        let skipped = start.saturating_sub(segment.stream_offset);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        bytes.extend_from_slice(&segment.bytes[skipped..]);
        expected = end;
    }
    bytes
}

/// Returns the length of an incomplete UTF-8 character at the end.
fn incomplete_char_len(bytes: &[u8]) -> usize {
    let end = &bytes[bytes.len().saturating_sub(3)..];
    let invalid = end
        .utf8_chunks()
        .last()
        .map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
