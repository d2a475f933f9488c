//! A file that is being replaced, here or there.

use std::fs::File;

use super::clerk::Confined;
use super::request::Request;
use crate::stream::write_at;
use crate::{FilesError, StreamWriter};

/// What will be in a file. Dropping it leaves the file as it is, and no trace.
#[derive(Debug)]
pub struct Writer(pub(super) Kind);

#[derive(Debug)]
pub(super) enum Kind {
    Here(StreamWriter),
    /// What is written has no name here. Who has it at the other end of the line will name it, or
    /// let go of it with the line.
    Confined {
        draft: File,
        there: Confined,
    },
}

impl Writer {
    /// Writes a block, anywhere and in any order. What is never written is zero.
    pub fn write_block(&self, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        match &self.0 {
            Kind::Here(writer) => writer.write_block(offset, bytes),
            Kind::Confined { draft, .. } => write_at(draft, offset, bytes),
        }
    }

    /// Puts what was written in the place of the file, in one step for everybody who looks.
    pub fn commit(self) -> Result<(), FilesError> {
        match self.0 {
            Kind::Here(writer) => writer.commit(),
            Kind::Confined { there, .. } => there.ask(&Request::Commit)?.done(),
        }
    }
}
