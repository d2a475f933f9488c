//! The program that keepers are.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::strings::{HasNul, Strings};
use crate::sys::birth::Program;

/// A program that does nothing but call [`keeper::main`](super::main), before it has a second
/// thread.
///
/// For a program that can be told to, its own is the best one: `/proc/self/exe`, which is still the
/// same when somebody has put another version in its place.
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    /// Where it is; no `PATH` is searched.
    pub program: PathBuf,
    /// What it is told.
    pub args: Vec<OsString>,
}

/// The same for `execve`.
#[derive(Debug)]
pub(super) struct LaidOut {
    program: Strings,
    argv: Strings,
    env: Strings,
    /// None: it stays where we are, for programs that are started in a directory relative to it, and
    /// since one may be in a directory that one can't enter.
    cwd: Strings,
}

impl LaidOut {
    pub(super) fn new(command: &KeeperCommand) -> Result<Self, HasNul> {
        let mut laid_out = Self {
            program: Strings::default(),
            argv: Strings::default(),
            env: Strings::default(),
            cwd: Strings::default(),
        };
        let program = command.program.as_os_str();
        laid_out.program.push(&[program.as_bytes()])?;
        // In lists of processes it goes by our own name.
        let name = std::env::args_os().next();
        let name = name.unwrap_or_else(|| program.to_owned());
        for argument in std::iter::once(&name).chain(&command.args) {
            laid_out.argv.push(&[argument.as_bytes()])?;
        }
        // Of our environment only what it takes to load our program: it has no use for the rest, and
        // who looks for something there doesn't mean it.
        for (name, value) in std::env::vars_os() {
            let name = name.into_vec();
            if name.starts_with(b"LD_") {
                laid_out.env.push(&[&name, b"=", value.as_bytes()])?;
            }
        }
        Ok(laid_out)
    }

    pub(super) fn program(&self) -> Program<'_> {
        Program {
            candidates: &self.program,
            argv: &self.argv,
            env: &self.env,
            cwd: &self.cwd,
        }
    }
}
