//! Starts the configured MCP servers for one command.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use outpost_client::Executor;
use outpost_engine::sandbox::Level;
use outpost_mcp::{
    ExecutorProvider, Executors, Limits, ServerConfig, ServerPool, config::Environment,
};

use super::lazy_remote::LazyRemote;
use crate::{
    args::ConfiguredServersOptions,
    config::{self, Layer, Source},
    console::Signals,
    exit,
    logging::{self, LogFormat},
    target,
};

/// Log filter of `--verbose`.
const VERBOSE: &str = "outpost=debug,outpost_mcp=debug";

/// The configured servers, and the executor for remote ones.
pub(super) struct ConfiguredServers {
    pub(super) servers: BTreeMap<String, ServerConfig>,
    on: Option<String>,
}

impl ConfiguredServers {
    /// Reads the configuration.
    pub(super) fn load(args: &ConfiguredServersOptions) -> anyhow::Result<Self> {
        if args.verbose {
            logging::start(&VERBOSE.parse()?, LogFormat::Text, false)?;
        }
        let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
        let config = layers.config()?;
        Ok(ConfiguredServers {
            servers: config.mcp_servers.0.servers,
            on: args.on.on.clone().or(config.mcp.on.0),
        })
    }

    /// Returns whether a server is remote and no executor is configured, so that it can't start.
    pub(super) fn lacks_executor(&self, config: &ServerConfig) -> bool {
        config.enabled && config.environment == Environment::Remote && self.on.is_none()
    }

    /// Starts the servers, runs `work`, and stops them. A signal ends it early.
    pub(super) async fn run(
        self,
        work: impl AsyncFnOnce(&ServerPool) -> anyhow::Result<std::process::ExitCode>,
    ) -> anyhow::Result<std::process::ExitCode> {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let cwd = std::env::current_dir().context("cannot determine the current directory")?;
        let local = target::local(cwd, Level::default())?;
        let remote = self.on.map(|on| Arc::new(LazyRemote::new(on)));
        let executor: Arc<dyn Executor> = Arc::new(local.clone());
        let executors = Executors {
            local: Arc::new(executor),
            remote: remote
                .clone()
                .map(|remote| remote as Arc<dyn ExecutorProvider>),
        };
        let pool = ServerPool::start(self.servers, &executors, &Limits::default());
        let done = tokio::select! {
            done = work(&pool) => done,
            signal = signals.ending() => Ok(exit::of_signal(signal)),
        };
        let closing = async {
            pool.close().await;
            if let Some(remote) = remote {
                remote.close().await;
            }
            // All processes have ended by now, so a failure doesn't matter.
            let _ = local.close().await;
        };
        // A second signal skips the wait; local processes are killed with this program.
        tokio::select! {
            () = closing => {}
            _ = signals.ending() => {}
        }
        done
    }
}
