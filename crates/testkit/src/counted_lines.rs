//! Verifies output that consists of the numbers from 1, one per line, as printed by `seq`.

/// Compares each line with the next number.
#[derive(Debug, Default)]
pub struct SequenceCheck {
    /// The incomplete last line.
    rest: Vec<u8>,
    count: u64,
}

impl SequenceCheck {
    /// Verifies the next bytes.
    ///
    /// # Panics
    /// If a line is not the next number, because output was lost or duplicated.
    pub fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n');
        let rest = self.rest.split_off(whole.map_or(0, |end| end + 1));
        for line in self.rest.split_inclusive(|byte| *byte == b'\n') {
            self.count += 1;
            assert_eq!(
                line,
                format!("{}\n", self.count).as_bytes(),
                "output lost or duplicated"
            );
        }
        self.rest = rest;
    }

    /// Returns the number of complete lines.
    pub fn count(&self) -> u64 {
        self.count
    }
}
