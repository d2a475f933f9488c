//! `outpost sandbox`: runs a command in a local sandbox.

mod explain;
mod policy;

use std::{path::PathBuf, process::ExitCode};

use outpost_engine::sandbox::Level;
pub(crate) use policy::profile_sandbox;

use super::run::{self, Run};
use crate::{
    args::{LimitArgs, NetworkArgs, OnOrLaunch},
    config,
    render::out,
    restrictions::Restrictions,
    working_directory::directory,
};

/// Arguments of `outpost sandbox`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost sandbox -- make test                        may write this directory and /tmp; no network
  outpost sandbox --profile :read-only -- cat notes   may write nothing
  outpost sandbox --write ../cache --net -- npm ci
  outpost sandbox --net-policy npm --allow-host github.com:443 -- npm ci
  outpost sandbox -t --deny ~/.ssh --deny '**/*.pem' -- bash
  outpost sandbox --explain                           what is allowed, and how it is enforced

The exit code is the command's own, as with `outpost run`. If the sandbox can't be
enforced on this host, the command isn't started and the exit code is 1.")]
pub(crate) struct Sandbox {
    /// The profile: :workspace, :read-only, :danger-full-access, or a profile of the configuration;
    /// the configured default if it isn't given
    #[arg(short, long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Also allow writing here; may be given more than once
    #[arg(short, long, value_name = "DIR")]
    pub(crate) write: Vec<PathBuf>,

    /// Also allow reading here, if the profile doesn't allow reading everything; may be given more
    /// than once
    #[arg(short, long, value_name = "DIR")]
    pub(crate) read: Vec<PathBuf>,

    /// Deny access: a path, or a pattern with * ? or **, in which all other characters, including
    /// brackets and braces, are literal; may be given more than once
    #[arg(short, long, value_name = "DIR|PATTERN")]
    pub(crate) deny: Vec<String>,

    /// Allow the network
    #[arg(long, conflicts_with_all = ["net_policy", "allow_host", "deny_host"])]
    pub(crate) net: bool,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    /// Give the command a terminal of the size of this one
    #[arg(short, long)]
    pub(crate) tty: bool,

    /// The working directory and project root
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Run nothing; print what would be allowed, and how it is enforced
    #[arg(long)]
    pub(crate) explain: bool,

    /// Print the explanation as JSON
    #[arg(long, requires = "explain")]
    pub(crate) json: bool,

    /// The command and its arguments
    #[arg(
        required_unless_present = "explain",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<String>,
}

/// Runs the command, or explains its sandbox. The exit code is the command's.
pub(crate) fn sandbox(args: Sandbox) -> anyhow::Result<ExitCode> {
    let config = config::load_config(None)?;
    let level = config.sandbox.level;
    let cwd = directory(args.cwd.as_deref())?;
    let profiles = config.profiles();
    let request = policy::request(&args, &profiles, &config.network_policies(), cwd)?;
    if args.explain {
        return explain::explain(&args, &request, level);
    }
    if request.sandbox.is_none() {
        note_unsandboxed(&request.profile);
    }
    if level == Level::Landlock {
        explain::note_writable_own_files(&request);
    }
    // As in the policy.
    let cwd = request.cwd.to_str().map(str::to_owned);
    let command = Run {
        tty: args.tty,
        interactive: false,
        detach: false,
        cwd: cwd.or(args.cwd),
        env: Vec::new(),
        timeout: None,
        on: OnOrLaunch::default(),
        network: NetworkArgs::default(),
        limits: args.limits,
        command: args.command,
    };
    let restrictions = Restrictions {
        sandbox: request.sandbox,
        network: request.network.as_ref().map(Into::into),
        level,
    };
    Ok(run::restricted(&command, restrictions))
}

/// Prints a note on stderr that a profile grants full access, because the configuration may have
/// selected the profile.
pub(crate) fn note_unsandboxed(profile: &str) {
    out::note(&format!(
        "the profile {profile} confines nothing: commands have full access"
    ));
}
