//! Output whose every byte can be told: the numbers from one on, a line each, as `seq` prints them.

/// The numbers from one on, each compared as it comes.
#[derive(Debug, Default)]
pub struct CountedLines {
    /// A line that hasn't come whole.
    rest: Vec<u8>,
    count: u64,
}

impl CountedLines {
    /// Takes the next bytes.
    ///
    /// # Panics
    /// When a line isn't the next number: something was lost or came twice.
    pub fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n');
        let rest = self.rest.split_off(whole.map_or(0, |end| end + 1));
        for line in self.rest.split_inclusive(|byte| *byte == b'\n') {
            self.count += 1;
            assert_eq!(
                line,
                format!("{}\n", self.count).as_bytes(),
                "lost or doubled"
            );
        }
        self.rest = rest;
    }

    /// How many whole lines came.
    pub fn count(&self) -> u64 {
        self.count
    }
}
