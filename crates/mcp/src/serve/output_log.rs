//! The retained output of a process, and pages and summaries of it.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum size of a chunk, which is the unit of eviction. Small writes are joined, large
/// ones split.
const CHUNK_BYTES: usize = 8 * 1024;

/// An output stream. A terminal has only the first stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// How much of each stream is retained: its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRetention {
    /// Bytes retained of the beginning.
    pub head: usize,
    /// Bytes retained of the end.
    pub tail: usize,
    /// Maximum number of chunks of each, which bounds the overhead of tiny writes.
    pub chunks: usize,
}

/// The output of a process. A cursor is a byte offset in the output of both streams, in
/// the order of arrival.
#[derive(Debug)]
pub(super) struct OutputLog {
    retention: OutputRetention,
    /// The retained chunks by offset.
    chunks: BTreeMap<u64, Chunk>,
    end: u64,
    /// Indexed by stream.
    streams: [StreamStats; 2],
}

/// A retained chunk of output.
#[derive(Debug)]
struct Chunk {
    stream: Stream,
    /// The offset in its stream.
    stream_offset: u64,
    bytes: Vec<u8>,
    /// Part of the head, which is never evicted.
    head: bool,
}

/// The total and the chunks of one stream.
#[derive(Debug, Default)]
struct StreamStats {
    total: u64,
    head_chunks: usize,
    /// The offsets of the evictable chunks, oldest first.
    tail: VecDeque<u64>,
    tail_bytes: usize,
}

/// A retained, contiguous part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// The offset in the whole output.
    pub(super) offset: u64,
    /// The offset in the selected stream; equal to `offset` if both are selected.
    pub(super) stream_offset: u64,
    pub(super) bytes: &'a [u8],
}

impl OutputLog {
    pub(super) fn new(retention: OutputRetention) -> Self {
        OutputLog {
            retention,
            chunks: BTreeMap::new(),
            end: 0,
            streams: Default::default(),
        }
    }

    /// Returns the cursor after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes written, retained or not.
    pub(super) fn total(&self, stream: Option<Stream>) -> u64 {
        stream.map_or(self.end, |stream| self.streams[stream as usize].total)
    }

    /// Returns the number of retained bytes.
    pub(super) fn retained(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.bytes.len()).sum()
    }

    pub(super) fn append(&mut self, stream: Stream, bytes: &[u8]) {
        for part in bytes.chunks(CHUNK_BYTES) {
            let OutputRetention { head, chunks, .. } = self.retention;
            let stats = &self.streams[stream as usize];
            let headroom = match usize::try_from(stats.total) {
                Ok(total) if stats.head_chunks < chunks => head.saturating_sub(total),
                _ => 0,
            };
            let (head, tail) = part.split_at(headroom.min(part.len()));
            self.append_chunk(stream, head, true);
            self.append_chunk(stream, tail, false);
        }
        self.evict(stream);
    }

    /// Iterates over the retained output from `cursor` on, of one stream or of both.
    pub(super) fn segments(
        &self,
        stream: Option<Stream>,
        cursor: u64,
    ) -> impl Iterator<Item = Segment<'_>> {
        let before = self.chunks.range(..cursor).next_back();
        let first = match before {
            Some((offset, chunk)) if offset + chunk.bytes.len() as u64 > cursor => *offset,
            _ => cursor,
        };
        self.chunks
            .range(first..)
            .filter(move |(_, chunk)| stream.is_none_or(|stream| stream == chunk.stream))
            .map(move |(offset, chunk)| {
                let skipped = cursor.saturating_sub(*offset);
                let stream_offset = match stream {
                    None => *offset,
                    Some(_) => chunk.stream_offset,
                };
                let skipped_bytes = usize::try_from(skipped).unwrap_or(usize::MAX);
                Segment {
                    offset: offset + skipped,
                    stream_offset: stream_offset + skipped,
                    bytes: chunk.bytes.get(skipped_bytes..).unwrap_or_default(),
                }
            })
    }

    fn append_chunk(&mut self, stream: Stream, bytes: &[u8], head: bool) {
        if bytes.is_empty() {
            return;
        }
        let stats = &mut self.streams[stream as usize];
        let (offset, stream_offset) = (self.end, stats.total);
        let count = bytes.len();
        self.end += count as u64;
        let last = self.chunks.last_entry().map(|last| last.into_mut());
        let joined = match last {
            Some(last)
                if last.stream == stream
                    && last.head == head
                    && last.bytes.len() + count <= CHUNK_BYTES =>
            {
                last.bytes.extend_from_slice(bytes);
                true
            }
            _ => {
                let chunk = Chunk {
                    stream,
                    stream_offset,
                    bytes: bytes.to_vec(),
                    head,
                };
                self.chunks.insert(offset, chunk);
                false
            }
        };
        stats.total += count as u64;
        if head {
            stats.head_chunks += usize::from(!joined);
        } else {
            stats.tail_bytes += count;
            if !joined {
                stats.tail.push_back(offset);
            }
        }
    }

    fn evict(&mut self, stream: Stream) {
        let OutputRetention { tail, chunks, .. } = self.retention;
        let stats = &mut self.streams[stream as usize];
        while stats.tail_bytes > tail || stats.tail.len() > chunks {
            let Some(offset) = stats.tail.pop_front() else {
                return;
            };
            let evicted = self.chunks.remove(&offset);
            stats.tail_bytes -= evicted.map_or(0, |chunk| chunk.bytes.len());
        }
    }

    /// Returns the number of bytes of a stream before a cursor.
    pub(super) fn stream_offset_at(&self, stream: Option<Stream>, cursor: u64) -> u64 {
        if stream.is_none() {
            return cursor;
        }
        // Derived from the last retained segment before the cursor. Bytes between that and
        // the cursor belong to the other stream, or were evicted and can't be attributed.
        let before = self
            .segments(stream, 0)
            .take_while(|segment| segment.offset < cursor)
            .last();
        before.map_or(0, |segment| {
            let length = (segment.bytes.len() as u64).min(cursor - segment.offset);
            segment.stream_offset + length
        })
    }
}

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
pub(super) struct OutputExcerpt {
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
            let space = limit - bytes.len();
            at_gap = segment.stream_offset > expected && !bytes.is_empty();
            if space == 0 || at_gap {
                more = true;
                break;
            }
            missed += segment.stream_offset - expected;
            let taken = segment.bytes.len().min(space);
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

impl OutputExcerpt {
    /// Returns the whole output if it fits into `limit` bytes. Otherwise returns its
    /// beginning and end, cut at line boundaries where possible.
    pub(super) fn read(log: &OutputLog, stream: Option<Stream>, limit: usize) -> Self {
        let whole = OutputPage::read(log, stream, 0, limit, true);
        if !whole.more && whole.missed == 0 {
            return OutputExcerpt {
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
        OutputExcerpt {
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

#[cfg(test)]
#[path = "output_log_tests.rs"]
mod tests;
