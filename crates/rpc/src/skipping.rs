//! A message that is discarded while it arrives.

use outpost_protocol::{IdScanner, RequestId};

use crate::Received;

/// Reason for which a message is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The message is over the size limit.
    TooLong,
    /// The system has no memory for the message.
    NoMemory,
    /// The memory of all connections is in use.
    Overloaded,
}

/// A message that is being discarded. Only its id is kept, so that the error can name it.
#[derive(Debug)]
pub(crate) struct Skipping {
    reason: SkipReason,
    scanner: IdScanner,
}

impl Skipping {
    pub(crate) fn new(reason: SkipReason) -> Self {
        Skipping {
            reason,
            scanner: IdScanner::default(),
        }
    }

    /// Discards the next bytes of the message.
    pub(crate) fn discard(&mut self, bytes: &[u8]) {
        self.scanner.scan(bytes);
    }

    /// Returns the report of the message at its end.
    pub(crate) fn finish(self) -> Received {
        let request_id: Option<RequestId> = self.scanner.request_id();
        Received::Skipped(self.reason, request_id)
    }
}
