//! `outpost sandbox`: a command, right here and confined.

mod explain;
mod policy;

use std::process::ExitCode;

pub(crate) use policy::named;

use super::run;
use crate::{
    args::{OnAny, Run, Sandbox},
    config::{self, InForce, Layer, Source},
    render::out,
};

/// Runs the command; the exit code is its own. Or explains what it would be
/// confined to.
pub(crate) fn run(args: Sandbox) -> ExitCode {
    match prepare(&args) {
        Err(error) => out::conclude(Err(error)),
        Ok((in_force, wish)) if args.explain => {
            out::conclude(explain::explain(&args, &wish, in_force.sandbox_level))
        }
        Ok((in_force, wish)) => {
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
            run::confined(&command, wish.sandbox, in_force.sandbox_level)
        }
    }
}

fn prepare(args: &Sandbox) -> anyhow::Result<(InForce, policy::Wish)> {
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let in_force = layers.in_force()?;
    let cwd = run::directory(args.cwd.as_deref())?;
    let wish = policy::wish(args, &in_force.settings.profiles, cwd)?;
    Ok((in_force, wish))
}
