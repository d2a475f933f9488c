//! What a reader gets that asks for "everything after N".

use crate::{Chunk, Exit, Seq};

/// Retained output behind a cursor, with the state of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The output, oldest first.
    pub chunks: Vec<Chunk>,
    /// The cursor to go on from is the number before this one.
    pub next_seq: Seq,
    /// How the process ended, once that is known.
    pub exit: Option<Exit>,
    /// Whether every stream has ended.
    pub closed: bool,
}
