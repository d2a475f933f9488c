//! `outpost mcp serve`: an MCP server with tools for commands and files.

use std::{path::Path, pin::Pin, process::ExitCode, sync::Arc};

use anyhow::Context;
use outpost_client::{Error, Executor};
use outpost_engine::sandbox::Level;
use outpost_mcp::{
    ExecutorProvider,
    serve::{ToolSandbox, ToolServer, ToolServerConfig},
};
use tokio_util::sync::CancellationToken;

use super::lazy_remote::LazyRemote;
use crate::{
    args::{OnOrLaunch, Variable, env_args, text, variable},
    cmd::sandbox,
    config,
    console::Signals,
    endpoint::{Endpoint, cwd_on},
    exit, target,
};

/// Ends all processes of the executor, and disconnects.
type Closing = Pin<Box<dyn Future<Output = ()>>>;

/// Arguments of `outpost mcp serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp serve
  outpost mcp serve --cwd ~/project -e GITHUB_TOKEN
  outpost mcp serve --cwd ~/project --sandbox :workspace
  outpost mcp serve --on ws://127.0.0.1:7777
  outpost mcp serve --on 'stdio:ssh build outpost serve --listen stdio://'
  claude mcp add build -- outpost mcp serve --on wss://build.example:7777")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// The working directory of commands and base of relative paths; by default this directory, or
    /// the server's
    #[arg(long, value_name = "DIR", value_parser = text())]
    pub(crate) cwd: Option<String>,

    /// The sandbox profile of commands and file operations: :workspace, :read-only, or a profile of
    /// the local configuration; the workspace is the working directory
    #[arg(long, value_name = "PROFILE")]
    pub(crate) sandbox: Option<String>,

    /// Set a variable for every command, or with NAME alone copy its value; may be given more than
    /// once
    #[arg(short, long, value_name = "NAME[=VALUE]", value_parser = variable())]
    pub(crate) env: Vec<Variable>,
}

/// Serves tools on stdio until the end of stdin or a signal.
pub(super) async fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let on = args.on.explicit_endpoint()?;
    let (tool_sandbox, level) = tool_sandbox(args)?;
    let (provider, close): (Arc<dyn ExecutorProvider>, Closing) = match on.clone() {
        Some(server) => {
            let remote = Arc::new(LazyRemote::new(server, "outpost mcp serve"));
            let provider = Arc::clone(&remote);
            (provider, Box::pin(async move { remote.close().await }))
        }
        None => {
            let local: Arc<dyn Executor> = Arc::new(target::local(None, level)?);
            let provider = Arc::new(Arc::clone(&local));
            // Processes that don't end in time are killed.
            (provider, Box::pin(async move { drop(local.close().await) }))
        }
    };
    let setup = ToolServerConfig {
        cwd: cwd_on(on.as_ref(), args.cwd.as_deref()),
        env: env_args(&args.env, false)?,
        name: on.as_ref().map(Endpoint::description),
        tool_sandbox,
        ..ToolServerConfig::default()
    };
    let opening = async {
        let server = ToolServer::new(provider, setup).await;
        let server = server.map_err(|error| {
            let needs = match error {
                Error::NoDirectory => " needs an absolute --cwd for the sandbox",
                _ => "",
            };
            let message = match &on {
                Some(server) => format!("--on {}{needs}", server.description()),
                None => "cannot start the local executor".to_owned(),
            };
            anyhow::Error::new(error).context(message)
        })?;
        let tried = server.check_confinement().await;
        tried.context("cannot enforce the sandbox")?;
        Ok::<_, anyhow::Error>(server)
    };
    let server = match signals.unless_ended(opening).await {
        Ok(Ok(server)) => Arc::new(server),
        Ok(Err(error)) => {
            let _ = signals.unless_ended(close).await;
            return Err(error);
        }
        Err(signal) => {
            let _ = signals.unless_ended(close).await;
            return Ok(exit::of_signal(signal));
        }
    };
    let until = CancellationToken::new();
    let speaking = server.serve(tokio::io::stdin(), tokio::io::stdout(), until.clone());
    tokio::pin!(speaking);
    let (served, stopped) = tokio::select! {
        served = &mut speaking => (served, None),
        signal = signals.ending() => {
            until.cancel();
            (speaking.await, Some(signal))
        }
    };
    let closing = async {
        close.await;
        server.close().await;
    };
    // A second signal skips the wait; local processes are killed with this program.
    let _ = signals.unless_ended(closing).await;
    served?;
    Ok(stopped.map_or(ExitCode::SUCCESS, exit::of_signal))
}

/// The sandbox of all tools, and its level.
fn tool_sandbox(args: &Serve) -> anyhow::Result<(Option<ToolSandbox>, Level)> {
    let Some(profile) = &args.sandbox else {
        return Ok((None, Level::default()));
    };
    let config = config::load_config(None)?;
    // The working directory is set for each command.
    let sandbox = sandbox::profile_sandbox(&config.profiles(), profile, Path::new("/"))
        .with_context(|| format!("--sandbox {profile}"))?;
    if sandbox.is_none() {
        sandbox::note_unsandboxed(profile);
    }
    let profiles = config.profiles();
    let network = profiles.network_policy(profile);
    let network = network.map(|name| config.network_policies().named(name));
    let network = network.transpose()?;
    let tool_sandbox = sandbox.map(|sandbox| ToolSandbox {
        profile: profile.clone(),
        sandbox,
        network: network.map(|rules| (&rules).into()),
    });
    Ok((tool_sandbox, config.sandbox.level))
}
