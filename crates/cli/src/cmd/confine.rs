//! `outpost confine`: a hidden command, the helper that runs inside a sandbox.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use outpost_engine::sandbox::{self, HelperCommand, Level, Sandbox};

/// Name of the command.
const NAME: &str = "confine";

/// The arguments after the name, if this is the command. Checked first, because parsing a whole
/// command line takes time.
pub(crate) fn arguments() -> Option<impl Iterator<Item = OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == NAME).then_some(arguments)
}

/// Sets up the sandbox and execs the program, or runs a file worker; returns on failure, or when
/// the worker's client is gone.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    sandbox::run_helper(arguments, |socket| {
        outpost_files::run_worker(socket, sandbox::is_placeholder);
    })
}

/// The command with which the server starts the helper: the executable that is running now, even if
/// its file was replaced.
pub(crate) fn command() -> HelperCommand {
    HelperCommand {
        program: PathBuf::from("/proc/self/exe"),
        args: vec![NAME.to_owned()],
    }
}

/// Creates the sandbox of the given level.
pub(crate) fn sandbox(level: Level) -> Sandbox {
    Sandbox::new(command(), level)
}
