//! Sources of frames that are asked in turn.

use crate::FrameBuffer;

/// Whether a feed has frames left after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// It needs another turn.
    Yes,
    /// It is drained, and calls [`Outbox::ready`](super::Outbox::ready) for its next turn.
    No,
}

/// A source of frames that takes turns with the other feeds of its connection.
pub trait Feed: Send + Sync {
    /// Appends frames with about `budget` payload bytes at most.
    fn fill(&self, frames: &mut FrameBuffer, budget: usize) -> More;

    /// Called after all frames appended so far were handed to the transport.
    fn written(&self);
}
