//! `outpost keeper`: what the server starts itself as, to keep process trees
//! where there are no cgroups. Not for people.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use outpost_engine::KeeperCommand;

/// Keeps trees until the server is gone.
pub(crate) fn run() -> ExitCode {
    outpost_engine::keeper::main()
}

/// How the server starts it: the very program that is running, even where
/// another version has been put in its place.
pub(crate) fn command() -> KeeperCommand {
    KeeperCommand {
        program: PathBuf::from("/proc/self/exe"),
        args: vec![OsString::from("keeper")],
    }
}
