//! The one cursor that holds a child back.

use crate::Seq;

/// Who the log waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody is attached: the child runs on and the oldest output is evicted.
    /// The cursor is where the last owner stopped.
    Absent {
        /// What the last owner had seen.
        cursor: Seq,
    },
    /// Nothing behind this cursor is evicted, and the log runs no further
    /// ahead of it than a window.
    Attached {
        /// What the owner has seen.
        cursor: Seq,
    },
}

impl Owner {
    /// What the owner has seen, or had seen when it left.
    #[must_use]
    pub fn cursor(self) -> Seq {
        match self {
            Owner::Absent { cursor } | Owner::Attached { cursor } => cursor,
        }
    }

    /// Whether the log waits for somebody.
    #[must_use]
    pub fn is_attached(self) -> bool {
        matches!(self, Owner::Attached { .. })
    }
}
