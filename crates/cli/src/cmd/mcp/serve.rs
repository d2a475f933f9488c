//! `outpost mcp serve`: an MCP server with tools for commands and files.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use outpost_client::{
    ConnectionState, Error, Executor, LocalExecutor, Pending, RemoteExecutor, RemoteOptions,
};
use outpost_engine::sandbox::Level;
use outpost_mcp::{
    ExecutorProvider,
    serve::{Confinement, ToolServer, ToolServerConfig},
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    args::McpServe,
    cmd::sandbox,
    config::{self, Layer, Source},
    console::Signals,
    disconnect::{Leftovers, disconnect},
    env_args::env_args,
    exit, target,
};

pub(super) async fn serve(args: &McpServe) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (confinement, level) = confinement(args)?;
    let executor = Arc::new(ServeExecutor::new(args, level)?);
    let setup = ToolServerConfig {
        cwd: args.cwd.clone(),
        env: env_args(&args.env, |name| std::env::var_os(name))?,
        name: args.on.on.clone().map(|on| target::description(&on)),
        confinement,
        ..ToolServerConfig::default()
    };
    let provider: Arc<dyn ExecutorProvider> = Arc::clone(&executor) as _;
    let opening = async {
        let server = ToolServer::new(provider, setup).await;
        let server = server.map_err(|error| {
            let needs = match error {
                Error::NoDirectory => " needs an absolute --cwd for the sandbox",
                _ => "",
            };
            let message = match &args.on.on {
                Some(on) => format!("--on {}{needs}", target::description(on)),
                None => "cannot start the local executor".to_owned(),
            };
            anyhow::Error::new(error).context(message)
        })?;
        let tried = server.check_confinement().await;
        tried.context("cannot enforce the sandbox")?;
        Ok::<_, anyhow::Error>(server)
    };
    let opened = match signals.unless_ended(opening).await {
        Ok(opened) => opened,
        Err(signal) => {
            let _ = signals.unless_ended(executor.close()).await;
            return Ok(exit::of_signal(signal));
        }
    };
    let server = match opened {
        Ok(server) => Arc::new(server),
        Err(error) => {
            let _ = signals.unless_ended(executor.close()).await;
            return Err(error);
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
        executor.close().await;
        server.close().await;
    };
    // A second signal skips the wait; local processes are killed with this program.
    tokio::select! {
        () = closing => {}
        _ = signals.ending() => {}
    }
    served?;
    Ok(stopped.map_or(ExitCode::SUCCESS, exit::of_signal))
}

/// The sandbox of all tools, and its level.
fn confinement(args: &McpServe) -> anyhow::Result<(Option<Confinement>, Level)> {
    let Some(profile) = &args.sandbox else {
        return Ok((None, Level::default()));
    };
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let config = layers.config()?;
    // The working directory is set for each command.
    let sandbox = sandbox::profile_sandbox(&config.profiles(), profile, Path::new("/"))
        .with_context(|| format!("--sandbox {profile}"))?;
    let confinement = sandbox.map(|sandbox| Confinement {
        profile: profile.clone(),
        sandbox,
    });
    Ok((confinement, config.sandbox.level))
}

/// Executor of the tools: local, or a server, which is reconnected after the connection has
/// failed for good.
enum ServeExecutor {
    Local(LocalExecutor, Arc<dyn Executor>),
    Remote {
        on: String,
        remote: Mutex<Option<Arc<RemoteExecutor>>>,
    },
}

impl ServeExecutor {
    fn new(args: &McpServe, level: Level) -> anyhow::Result<Self> {
        if let Some(on) = &args.on.on {
            return Ok(ServeExecutor::Remote {
                on: on.clone(),
                remote: Mutex::new(None),
            });
        }
        let cwd = std::env::current_dir().context("cannot determine the current directory")?;
        let local = target::local(cwd, level)?;
        Ok(ServeExecutor::Local(local.clone(), Arc::new(local)))
    }

    /// Ends all processes and disconnects.
    async fn close(&self) {
        match self {
            ServeExecutor::Local(local, _) => {
                // Processes that don't end in time are killed.
                let _ = local.close().await;
            }
            ServeExecutor::Remote { remote, .. } => {
                if let Some(remote) = remote.lock().await.take() {
                    // Leftover processes end with the session.
                    disconnect(&remote, Leftovers::Processes).await;
                }
            }
        }
    }
}

impl ExecutorProvider for ServeExecutor {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        Box::pin(async move {
            let (on, remote) = match self {
                ServeExecutor::Local(_, place) => return Ok(Arc::clone(place)),
                ServeExecutor::Remote { on, remote } => (on, remote),
            };
            let mut known = remote.lock().await;
            if let Some(remote) = &*known
                && !matches!(
                    *remote.connection_state().borrow(),
                    ConnectionState::Failed { .. }
                )
            {
                let place: Arc<dyn Executor> = Arc::clone(remote) as _;
                return Ok(place);
            }
            let options = RemoteOptions::default().client_name("outpost mcp serve");
            let remote = Arc::new(target::reach(on, options).await?);
            *known = Some(Arc::clone(&remote));
            let place: Arc<dyn Executor> = remote;
            Ok(place)
        })
    }
}
