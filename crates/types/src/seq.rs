//! Event numbers.

use std::fmt;

/// The number of an event in its process's log; the first one is 1.
///
/// As a cursor it names the last event seen, so [`Seq::START`] has seen nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// The cursor that has seen nothing yet.
    pub const START: Seq = Seq(0);

    /// The number after this one, saturating.
    #[must_use]
    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }

    /// The number before this one, saturating at [`Seq::START`].
    #[must_use]
    pub fn previous(self) -> Seq {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
