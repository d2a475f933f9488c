//! `outpost confine`: what the server starts itself as, between itself and a
//! confined process. Not for people.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use outpost_engine::sandbox::{self, Level, Sandbox, StageCommand};

/// What it is called.
const NAME: &str = "confine";

/// The arguments behind the name, if it is what was asked for. Asked before
/// anything else, since reading a whole command line takes its time.
pub(crate) fn asked() -> Option<impl Iterator<Item = OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == NAME).then_some(arguments)
}

/// Becomes the next stage, or does file operations behind its walls; returns if
/// it fails, or when nobody asks any more.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    sandbox::stage(arguments, |socket| {
        outpost_files::serve(socket, sandbox::is_placeholder);
    })
}

/// How the server starts it: the very program that is running, even where
/// another version has been put in its place.
pub(crate) fn command() -> StageCommand {
    StageCommand {
        program: PathBuf::from("/proc/self/exe"),
        args: vec![NAME.to_owned()],
    }
}

/// What confines processes here, by the means that were chosen.
pub(crate) fn sandbox(level: Level) -> Sandbox {
    Sandbox::new(command(), level)
}
