//! Starts the configured MCP servers for one command.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc};

use outpost_client::Executor;
use outpost_engine::sandbox::Level;
use outpost_mcp::{
    ExecutorProvider, Executors, Limits, ServerConfig, ServerPool, config::Environment,
};

use super::lazy_remote::LazyRemote;
use crate::{
    args::{LOCAL, OnOrLaunch},
    config,
    console::Signals,
    endpoint::Endpoint,
    exit,
    logging::{self, Log, LogFormat},
    target,
};

/// Log filter of `--verbose`.
const VERBOSE: &str = "outpost=debug,outpost_mcp=debug";

/// The configuration and the executor of MCP servers.
#[derive(clap::Args, Debug)]
pub(crate) struct McpConfigArgs {
    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Log the stderr output and the state of the servers
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The configured servers, and the executor for remote servers.
pub(super) struct ConfiguredServers {
    pub(super) servers: BTreeMap<String, ServerConfig>,
    server: Option<Endpoint>,
    /// Flushes the log of `--verbose` when the command ends.
    _log: Option<Log>,
}

impl ConfiguredServers {
    /// Reads the configuration.
    pub(super) fn load(args: &McpConfigArgs) -> anyhow::Result<Self> {
        let verbose = args.verbose.then_some(VERBOSE);
        let log = verbose.map(|level| logging::start(level, LogFormat::Text, false));
        let config = config::load_config(args.config.clone())?;
        let hosts = config.hosts()?;
        let on = match args.on.on.as_deref() {
            None => Some(config.mcp.on.as_str()).filter(|on| !on.is_empty()),
            on => on,
        };
        let on = on.filter(|on| *on != LOCAL);
        args.on.access.check_used(on.is_some())?;
        let server = on.map(|on| Endpoint::of_host(on, &hosts, &args.on.access));
        Ok(ConfiguredServers {
            servers: config.mcp_servers()?,
            server: server.transpose()?,
            _log: log.transpose()?,
        })
    }

    /// Returns whether a server is remote and no executor is configured, so that it can't start.
    pub(super) fn lacks_executor(&self, config: &ServerConfig) -> bool {
        config.enabled && config.environment == Environment::Remote && self.server.is_none()
    }

    /// Starts the servers, runs `work`, and stops them. A signal ends it early.
    pub(super) async fn run(
        self,
        work: impl AsyncFnOnce(&ServerPool) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let mut signals = Signals::listen()?;
        let local: Arc<dyn Executor> = Arc::new(target::local(None, Level::default())?);
        let remote = self
            .server
            .map(|server| Arc::new(LazyRemote::new(server, "outpost mcp")));
        let executors = Executors {
            local: Arc::new(Arc::clone(&local)),
            remote: remote
                .clone()
                .map(|remote| remote as Arc<dyn ExecutorProvider>),
        };
        let pool = ServerPool::start(self.servers, &executors, &Limits::default());
        let done = signals.unless_ended(work(&pool)).await;
        let closing = async {
            pool.close().await;
            if let Some(remote) = remote {
                remote.close().await;
            }
            // All processes have ended by now, so a failure doesn't matter.
            let _ = local.close().await;
        };
        // A second signal skips the wait; local processes are killed with this program.
        let _ = signals.unless_ended(closing).await;
        done.unwrap_or_else(|signal| Ok(exit::of_signal(signal)))
    }
}
