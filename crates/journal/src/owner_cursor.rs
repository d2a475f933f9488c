//! The owner: the cursor that exerts backpressure.

use crate::Seq;

/// The owner of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerCursor {
    /// No owner is attached. The child runs on, and the oldest output is
    /// evicted.
    Absent {
        /// The last event that the last owner has seen.
        cursor: Seq,
    },
    /// An owner is attached. No event after its cursor is evicted, and the log
    /// gets at most a window ahead of it.
    Attached {
        /// The last event that the owner has seen.
        cursor: Seq,
    },
}

impl OwnerCursor {
    /// The last event that the current or last owner has seen.
    #[must_use]
    pub fn cursor(self) -> Seq {
        match self {
            OwnerCursor::Absent { cursor } | OwnerCursor::Attached { cursor } => cursor,
        }
    }

    /// Whether an owner is attached.
    #[must_use]
    pub fn is_attached(self) -> bool {
        matches!(self, OwnerCursor::Attached { .. })
    }
}
