//! `outpost run --detach`: starts something that goes on alone.

use std::{path::Path, process::ExitCode};

use anyhow::Context;
use outpost_client::Start;

use super::environment;
use crate::{
    args::Run,
    console::window_size,
    detached::{self, Site},
    render::{command_line, out},
};

/// Starts it, and prints the id by which it is found again.
pub(super) async fn detach(args: &Run) -> anyhow::Result<ExitCode> {
    let site = Site::of(args.on.on.as_deref());
    let label = command_line::quoted(&args.command);
    let id = detached::start(&site, start(args, &site)?, &label).await?;
    out::lines([id])?;
    Ok(ExitCode::SUCCESS)
}

fn start(args: &Run, site: &Site) -> anyhow::Result<Start> {
    let start = Start::new(args.command.iter().cloned());
    let start = match site {
        // Our own server was started at another time and in another place.
        Site::Home => {
            let here = std::env::current_dir().context("cannot tell the working directory")?;
            let cwd = here.join(args.cwd.as_deref().unwrap_or_default());
            environment::exactly_ours(start, &args.env).cwd(cwd)
        }
        Site::Url(_) => {
            let start = environment::theirs(start, args.tty, &args.env);
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
