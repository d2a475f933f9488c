//! Retention and flow-control limits.

/// The limits of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of output bytes to retain.
    pub retain_bytes: usize,
    /// The number of chunks to retain, which bounds a trickle of single bytes.
    /// This number also limits how many chunks an owner may lag.
    pub retain_chunks: usize,
    /// The number of bytes by which the log may be ahead of its owner.
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
