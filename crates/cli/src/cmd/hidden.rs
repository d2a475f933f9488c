//! Hidden commands that the server runs: `outpost confine`, the helper inside a sandbox, and
//! `outpost subreaper`, which supervises process trees on hosts without cgroups. `outpost relay` is
//! run by ssh.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use outpost_engine::{
    ReaperCommand,
    sandbox::{self, HelperCommand, Level, Sandbox},
};

use crate::{config::ConfigFiles, detached, state_directory, user_server};

/// The executable that is running now, even if its file was replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";
const CONFINE: &str = "confine";

/// The arguments after the name, if this is `outpost confine`. Checked first, because parsing a
/// whole command line takes time.
pub(crate) fn confine_arguments() -> Option<impl Iterator<Item = OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == CONFINE).then_some(arguments)
}

/// Sets up the sandbox and execs the program, or runs a file worker; returns on failure, or when
/// the worker's client is gone.
pub(crate) fn confine(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    sandbox::run_helper(arguments, |socket| {
        outpost_files::run_worker(socket, sandbox::is_placeholder);
    })
}

/// The command with which the server starts the sandbox helper. `config` is the value of `--config`.
pub(crate) fn confine_command(config: Option<&Path>) -> HelperCommand {
    let config = ConfigFiles::new(config.map(Path::to_owned), |name| std::env::var_os(name));
    let mut own_paths = config.own_paths();
    own_paths.extend(user_server::own_path());
    own_paths.extend(detached::own_path());
    HelperCommand {
        program: PathBuf::from(THIS_PROGRAM),
        args: vec![CONFINE.to_owned()],
        own_paths,
        grant_record: Some(state_directory::grant_record()),
        open_files: None,
    }
}

/// Connects stdin and stdout to the user's server, until either side ends.
pub(crate) async fn relay() -> anyhow::Result<ExitCode> {
    let (mut from_server, mut to_server) = user_server::open_socket().await?.into_split();
    let (mut stdin, mut stdout) = (tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        _ = tokio::io::copy(&mut stdin, &mut to_server) => {}
        _ = tokio::io::copy(&mut from_server, &mut stdout) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The command with which the server starts the subreaper.
pub(crate) fn subreaper_command() -> ReaperCommand {
    ReaperCommand {
        program: PathBuf::from(THIS_PROGRAM),
        args: vec![OsString::from("subreaper")],
    }
}

/// Creates the sandbox of the given level. `config` is the value of `--config`.
pub(crate) fn sandbox(level: Level, config: Option<&Path>) -> Sandbox {
    Sandbox::new(confine_command(config), level)
}
