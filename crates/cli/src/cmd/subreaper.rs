//! `outpost subreaper`: a hidden command that the server runs to supervise
//! process trees on hosts without cgroups.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use outpost_engine::ReaperCommand;

/// Supervises process trees until the server is gone.
pub(crate) fn run() -> ExitCode {
    outpost_engine::subreaper::main()
}

/// The command with which the server starts it: the executable that is running
/// now, even if its file was replaced.
pub(crate) fn command() -> ReaperCommand {
    ReaperCommand {
        program: PathBuf::from("/proc/self/exe"),
        args: vec![OsString::from("subreaper")],
    }
}
