//! `outpost run --detach`: starts something that goes on alone.

use std::process::ExitCode;

use anyhow::Context;
use outpost_client::Start;

use super::task::perform;
use crate::{
    args::Run,
    detached::{self, Site},
    render::{command_line, out},
};

pub(crate) fn run(args: &Run) -> ExitCode {
    perform(detach(args))
}

async fn detach(args: &Run) -> anyhow::Result<ExitCode> {
    let cwd = std::env::current_dir().context("cannot tell the working directory")?;
    let start = Start::new(args.command.iter().cloned())
        .cwd(cwd)
        .envs(std::env::vars());
    let label = command_line::quoted(&args.command);
    let site = Site::of(args.on.on.as_deref());
    let id = detached::start(&site, start, &label).await?;
    out::lines([id])?;
    Ok(ExitCode::SUCCESS)
}
