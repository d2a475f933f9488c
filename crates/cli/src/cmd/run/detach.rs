//! `outpost run --detach`: starts something that goes on alone.

use std::{io::stdin, path::Path, process::ExitCode};

use outpost_client::Start;

use super::{directory, environment};
use crate::{
    args::{LAUNCHED, Run},
    console::window_size,
    detached::{self, NotStarted, Site},
    exit,
    render::{command_line, out},
};

/// Starts it, and prints the id by which it is found again.
pub(super) async fn detach(args: &Run) -> anyhow::Result<ExitCode> {
    let on = args.on.on.as_deref();
    if on.is_some_and(|on| on.starts_with(LAUNCHED)) {
        return Ok(exit::misuse(
            "--on stdio: can't be used with --detach: such a server ends with its command",
        ));
    }
    let site = Site::of(on);
    let label = command_line::quoted(&args.command);
    let id = match detached::start(&site, start(args, &site)?, &label).await {
        Ok(id) => id,
        Err(NotStarted::Command(error)) => {
            return Ok(exit::not_started(&args.command[0], &error));
        }
        Err(NotStarted::Server(error)) => return Err(error),
    };
    if has_input() {
        out::note("what comes from standard input isn't passed on to detached work");
    }
    out::lines([id])?;
    Ok(ExitCode::SUCCESS)
}

/// Whether somebody has sent something here, who may believe it will be read.
fn has_input() -> bool {
    rustix::io::ioctl_fionread(stdin()).is_ok_and(|bytes| bytes > 0)
}

fn start(args: &Run, site: &Site) -> anyhow::Result<Start> {
    let start = Start::new(args.command.iter().cloned());
    let start = match site {
        // Our own server was started at another time and in another place.
        Site::Home => {
            let cwd = directory(args.cwd.as_deref())?;
            environment::exactly_ours(start, &args.env)?.cwd(cwd)
        }
        Site::Url(_) => {
            let start = environment::theirs(start, args.tty, &args.env)?;
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
