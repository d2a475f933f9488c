//! A program's strings, for another program that executes it.

use crate::command::Command;
use crate::error::SpawnError;
use crate::prepared::Prepared;

/// The arguments of `execve`, validated as [`Spawner::spawn`](crate::Spawner::spawn) does. Each field is
/// a sequence of NUL-terminated strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecStrings {
    /// The paths to try, in this order. Relative ones are relative to the working directory.
    pub candidates: Vec<u8>,
    /// The arguments, `argv[0]` first.
    pub argv: Vec<u8>,
    /// The whole environment.
    pub env: Vec<u8>,
}

impl Command {
    /// Validates the command and returns its strings without starting it.
    ///
    /// # Errors
    /// If there is no program, or a string cannot be passed to it.
    pub fn exec_strings(&self) -> Result<ExecStrings, SpawnError> {
        let prepared = Prepared::new(self.clone())?;
        Ok(ExecStrings {
            candidates: prepared.candidates.bytes().to_vec(),
            argv: prepared.argv.bytes().to_vec(),
            env: prepared.env.bytes().to_vec(),
        })
    }
}
