//! `outpost sandbox`: runs a command in a local sandbox.

mod explain;
mod policy;

use std::process::ExitCode;

pub(crate) use policy::profile_sandbox;

use super::run;
use crate::{
    args::{OnAny, Run, Sandbox},
    config::{self, Config, Layer, Source},
    render::out,
};

/// Runs the command, or explains its sandbox. The exit code is the command's.
pub(crate) fn run(args: Sandbox) -> ExitCode {
    match prepare(&args) {
        Err(error) => out::finish(Err(error)),
        Ok((config, request)) if args.explain => {
            out::finish(explain::explain(&args, &request, config.sandbox.level))
        }
        Ok((config, request)) => {
            let command = Run {
                tty: args.tty,
                interactive: false,
                detach: false,
                cwd: args.cwd,
                env: Vec::new(),
                timeout: None,
                on: OnAny { on: None },
                command: args.command,
            };
            run::confined(&command, request.sandbox, config.sandbox.level)
        }
    }
}

fn prepare(args: &Sandbox) -> anyhow::Result<(Config, policy::SandboxRequest)> {
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let config = layers.config()?;
    let cwd = run::directory(args.cwd.as_deref())?;
    let request = policy::request(args, &config.profiles(), cwd)?;
    Ok((config, request))
}
