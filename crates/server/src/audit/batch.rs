//! Lines that are being written.

/// Capacity that an empty buffer keeps.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Lines that the thread has taken from the queue.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<u8>,
    /// Bytes that are written.
    written: usize,
}

impl Batch {
    /// The bytes that are not written yet, if there are any.
    pub(super) fn rest(&self) -> Option<&[u8]> {
        let rest = &self.lines[self.written..];
        Some(rest).filter(|rest| !rest.is_empty())
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to(KEPT_CAPACITY);
        self.written = 0;
    }

    /// Records that bytes were written. Returns the number of lines that they end.
    pub(super) fn advance(&mut self, written: usize) -> u64 {
        let rest = &self.lines[self.written..];
        let lines = rest.iter().take(written).filter(|byte| **byte == b'\n');
        let lines = lines.count() as u64;
        self.written += written;
        lines
    }

    /// Makes another file begin with a whole line.
    pub(super) fn begin_line_again(&mut self) {
        let ends = self.lines[..self.written]
            .iter()
            .rposition(|byte| *byte == b'\n');
        self.written = ends.map_or(0, |end| end + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_was_begun_is_whole_in_the_next_file() {
        let mut batch = Batch {
            lines: b"one\ntwo\n".to_vec(),
            written: 6,
        };
        batch.begin_line_again();
        assert_eq!(batch.rest(), Some(&b"two\n"[..]));
        batch.written = 2;
        batch.begin_line_again();
        assert_eq!(batch.rest(), Some(&b"one\ntwo\n"[..]));
    }
}
