//! Something that has frames to send whenever it is its turn.

use crate::Frames;

/// Whether a feed has more to send than fitted its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// It wants another turn.
    Yes,
    /// It has nothing left; it will announce itself again.
    No,
}

/// A source of frames that takes turns with the others of its connection.
pub trait Feed: Send + Sync {
    /// Appends frames with about `budget` bytes of payload at most.
    fn fill(&self, frames: &mut Frames, budget: usize) -> More;

    /// Everything that was filled so far has been handed to the transport.
    fn written(&self);
}
