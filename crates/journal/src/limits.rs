//! How much a log keeps, and how far it may run ahead.

/// The bounds of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes of output stay readable behind everybody.
    pub retain_bytes: usize,
    /// How many chunks stay readable, so that a trickle of single bytes is
    /// bounded too; an owner may lag by no more chunks than this either.
    pub retain_chunks: usize,
    /// How many bytes the log may be ahead of its owner.
    pub window_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            retain_bytes: 1024 * 1024,
            retain_chunks: 50_000,
            window_bytes: 1024 * 1024,
        }
    }
}
