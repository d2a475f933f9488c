//! A program's strings, for somebody else who will execute it.

use crate::command::Command;
use crate::error::SpawnError;
use crate::prepared::Prepared;

/// What a program is executed with, checked as [`Spawner::spawn`](crate::Spawner::spawn) checks it:
/// for a program of ours that becomes this one. Each is a run of strings that end in NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Where it may be, in the order of the search. Relative ones are relative to its directory.
    pub candidates: Vec<u8>,
    /// What it sees as its arguments, its own name first.
    pub argv: Vec<u8>,
    /// Its whole environment.
    pub env: Vec<u8>,
}

impl Command {
    /// Lays it out without starting anything.
    ///
    /// # Errors
    /// When there is no program, or something in it can't be passed to one.
    pub fn lay_out(&self) -> Result<LaidOut, SpawnError> {
        let prepared = Prepared::new(self.clone())?;
        Ok(LaidOut {
            candidates: prepared.candidates.bytes().to_vec(),
            argv: prepared.argv.bytes().to_vec(),
            env: prepared.env.bytes().to_vec(),
        })
    }
}
