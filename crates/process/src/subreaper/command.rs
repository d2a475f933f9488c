//! The program that runs as subreaper.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::strings::{HasNul, Strings};
use crate::sys::child_setup::Program;

/// A program that does nothing but call [`subreaper::main`](super::main) before it has a second
/// thread.
///
/// If a program can run itself in this mode, use `/proc/self/exe`: it still names the same executable
/// after the file was replaced by another version.
#[derive(Clone, Debug)]
pub struct ReaperCommand {
    /// The path of the executable; no `PATH` is searched.
    pub program: PathBuf,
    /// The arguments.
    pub args: Vec<OsString>,
}

/// A [`ReaperCommand`] prepared for `execve`.
#[derive(Debug)]
pub(super) struct PreparedReaper {
    program: Strings,
    argv: Strings,
    env: Strings,
    /// Empty: the subreaper keeps the server's working directory. Programs may be started in a
    /// directory relative to it, and the server may be in a directory that cannot be entered again.
    cwd: Strings,
}

impl PreparedReaper {
    pub(super) fn new(command: &ReaperCommand) -> Result<Self, HasNul> {
        let mut prepared = Self {
            program: Strings::default(),
            argv: Strings::default(),
            env: Strings::default(),
            cwd: Strings::default(),
        };
        let program = command.program.as_os_str();
        prepared.program.push(&[program.as_bytes()])?;
        // Shown in process lists under the server's own name.
        let name = std::env::args_os().next();
        let name = name.unwrap_or_else(|| program.to_owned());
        for argument in std::iter::once(&name).chain(&command.args) {
            prepared.argv.push(&[argument.as_bytes()])?;
        }
        // Pass on only the variables of the dynamic loader. The rest is of no use to a subreaper, and
        // tools that search /proc/*/environ should not find it there.
        for (name, value) in std::env::vars_os() {
            let name = name.into_vec();
            if name.starts_with(b"LD_") {
                prepared.env.push(&[&name, b"=", value.as_bytes()])?;
            }
        }
        Ok(prepared)
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
