//! `outpost run --detach`: starts detached work.

use std::{io::stdin, path::Path, process::ExitCode};

use outpost_client::Start;

use super::{directory, environment};
use crate::{
    args::{LAUNCHED, Run},
    console::window_size,
    detached::{self, NotStarted, ServerTarget},
    exit,
    render::{command_line, out},
};

/// Starts it, and prints its id.
pub(super) async fn detach(args: &Run) -> anyhow::Result<ExitCode> {
    let on = args.on.on.as_deref();
    if on.is_some_and(|on| on.starts_with(LAUNCHED)) {
        return Ok(exit::misuse(
            "cannot use --on stdio: with --detach: such a server ends with its command",
        ));
    }
    let server = ServerTarget::from_on(on);
    let label = command_line::quoted(&args.command);
    let id = match detached::start(&server, start(args, &server)?, &label).await {
        Ok(id) => id,
        Err(NotStarted::Command(error)) => {
            return Ok(exit::not_started(&args.command[0], &error));
        }
        Err(NotStarted::Server(error)) => return Err(error),
    };
    if has_input() {
        out::note("stdin is not forwarded to detached work");
    }
    out::lines([id])?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether stdin has data, which the user may expect to be forwarded.
fn has_input() -> bool {
    rustix::io::ioctl_fionread(stdin()).is_ok_and(|bytes| bytes > 0)
}

fn start(args: &Run, server: &ServerTarget) -> anyhow::Result<Start> {
    let start = Start::new(args.command.iter().cloned());
    let start = match server {
        // The user's server has its own environment and working directory.
        ServerTarget::User => {
            let cwd = directory(args.cwd.as_deref())?;
            environment::copied(start, &args.env)?.cwd(cwd)
        }
        ServerTarget::Url(_) => {
            let start = environment::for_server(start, args.tty, &args.env)?;
            match &args.cwd {
                Some(cwd) => start.cwd(Path::new(cwd)),
                None => start,
            }
        }
    };
    let start = match (args.tty, window_size()) {
        (true, Some((rows, cols))) => start.size(rows, cols),
        (true, None) => start.tty(),
        (false, _) => start,
    };
    Ok(match &args.timeout {
        Some(timeout) => start.timeout(timeout.0),
        None => start,
    })
}
