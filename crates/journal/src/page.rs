//! Pages of output, for long polls.

use crate::{Chunk, Exit, Seq};

/// Retained output after a cursor, and the state of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The output, oldest first.
    pub chunks: Vec<Chunk>,
    /// The number after the last event that the page covers.
    pub next_seq: Seq,
    /// The exit status, once it is known.
    pub exit: Option<Exit>,
    /// Whether the log is closed.
    pub closed: bool,
}
