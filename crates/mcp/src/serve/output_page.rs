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
        let mut run = Run::new(cursor);
        let (mut missed, mut more, mut at_gap) = (0, false, false);
        for segment in log.segments(stream, cursor) {
            let room = limit - run.bytes.len();
            at_gap = segment.stream_offset > expected && !run.bytes.is_empty();
            if room == 0 || at_gap {
                more = true;
                break;
            }
            missed += segment.stream_offset - expected;
            let taken = segment.bytes.len().min(room);
            run.push(segment.offset, &segment.bytes[..taken]);
            expected = segment.stream_offset + taken as u64;
            if taken < segment.bytes.len() {
                more = true;
                break;
            }
        }
        // The rest of a character before a gap was evicted.
        let incomplete = if (more || !complete) && !at_gap {
            incomplete_char_len(&run.bytes)
        } else {
            0
        };
        run.pop(incomplete);
        let next = if incomplete == 0 && !more {
            // Skips what the other stream wrote in the meantime.
            log.end()
        } else {
            run.end
        };
        OutputPage {
            bytes: run.bytes,
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
        let total = log.total(stream);
        let whole = OutputPage::read(log, stream, 0, limit, true);
        if !whole.more && whole.missed == 0 {
            return OutputSummary {
                head: whole.bytes,
                gap: None,
                tail: Vec::new(),
            };
        }
        let mut head = first_bytes(log, stream, limit / 2);
        let tail = last_bytes(log, stream, limit - limit / 2, total);
        let excess = match memchr::memrchr(b'\n', &head.bytes) {
            Some(end) if end >= head.bytes.len() / 2 => head.bytes.len() - end - 1,
            _ => incomplete_char_len(&head.bytes),
        };
        head.pop(excess);
        let tail_start = match memchr::memchr(b'\n', &tail) {
            Some(end) if end < tail.len() / 2 => end + 1,
            _ => (0..tail.len().min(4))
                .find(|index| !is_continuation(tail[*index]))
                .unwrap_or(0),
        };
        let tail = tail[tail_start..].to_vec();
        let gap = OmittedOutput {
            bytes: total - head.bytes.len() as u64 - tail.len() as u64,
            start: head.end,
        };
        OutputSummary {
            head: head.bytes,
            gap: Some(gap),
            tail,
        }
    }
}

/// Consecutive bytes of one stream, with their offsets in the whole output.
struct Run {
    bytes: Vec<u8>,
    /// Offset and length of each part.
    parts: Vec<(u64, usize)>,
    /// The offset after the last byte.
    end: u64,
}

impl Run {
    fn new(start: u64) -> Self {
        Run {
            bytes: Vec::new(),
            parts: Vec::new(),
            end: start,
        }
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.parts.push((offset, bytes.len()));
        self.end = offset + bytes.len() as u64;
    }

    /// Removes the last `count` bytes, and moves `end` to the first of them.
    fn pop(&mut self, count: usize) {
        self.bytes.truncate(self.bytes.len() - count);
        let mut left = count;
        while left > 0
            && let Some((offset, length)) = self.parts.pop()
        {
            let kept = length.saturating_sub(left);
            left -= length - kept;
            self.end = offset + kept as u64;
            if kept > 0 {
                self.parts.push((offset, kept));
            }
        }
    }
}

/// Returns the first bytes, up to the first gap.
fn first_bytes(log: &OutputLog, stream: Option<Stream>, limit: usize) -> Run {
    let mut run = Run::new(0);
    for segment in log.segments(stream, 0) {
        let room = limit - run.bytes.len();
        if room == 0 || segment.stream_offset != run.bytes.len() as u64 {
            break;
        }
        let taken = segment.bytes.len().min(room);
        run.push(segment.offset, &segment.bytes[..taken]);
    }
    run
}

/// Returns the last bytes, from the last gap on.
fn last_bytes(log: &OutputLog, stream: Option<Stream>, limit: usize, total: u64) -> Vec<u8> {
    let start = total.saturating_sub(limit as u64);
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
    for (before, byte) in bytes.iter().rev().take(3).enumerate() {
        let needed = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ if is_continuation(*byte) => continue,
            _ => return 0,
        };
        let present = before + 1;
        return if present < needed { present } else { 0 };
    }
    0
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
