//! The configured servers, for the time of one command.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use outpost_client::Place as _;
use outpost_engine::sandbox::Level;
use outpost_mcp::{
    Ensemble, Launcher, Launchers, Limits, LocalLauncher, ServerConfig, config::Environment,
};

use super::dialing::Dialing;
use crate::{
    args::McpServersArgs,
    config::{self, Layer, Source},
    console::Signals,
    exit,
    logging::{self, LogFormat},
    target,
};

/// What `--verbose` shows.
const VERBOSE: &str = "outpost=debug,outpost_mcp=debug";

/// The servers as configured, and where they can be started.
pub(super) struct Company {
    pub(super) servers: BTreeMap<String, ServerConfig>,
    on: Option<String>,
}

impl Company {
    /// What the configuration says.
    pub(super) fn of(args: &McpServersArgs) -> anyhow::Result<Self> {
        if args.verbose {
            logging::start(&VERBOSE.parse()?, LogFormat::Text, false)?;
        }
        let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
        let in_force = layers.in_force()?;
        Ok(Company {
            servers: in_force.mcp_servers.servers,
            on: args.on.on.clone().or(in_force.mcp_on.0),
        })
    }

    /// Whether a server is to run remotely with nowhere to do that, which no try can
    /// change.
    pub(super) fn is_nowhere(&self, config: &ServerConfig) -> bool {
        config.enabled && config.environment == Environment::Remote && self.on.is_none()
    }

    /// Starts the servers, does something with them and ends them, whatever
    /// comes of it. A signal ends it early.
    pub(super) async fn perform(
        self,
        work: impl AsyncFnOnce(&Ensemble) -> anyhow::Result<std::process::ExitCode>,
    ) -> anyhow::Result<std::process::ExitCode> {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        let here = target::here(cwd, Level::default())?;
        let remote = self.on.map(|on| Arc::new(Dialing::new(on)));
        let launchers = Launchers {
            local: Arc::new(LocalLauncher::new(Arc::new(here.clone()))),
            remote: remote.clone().map(|remote| -> Arc<dyn Launcher> { remote }),
        };
        let ensemble = Ensemble::start(self.servers, &launchers, &Limits::default());
        let done = tokio::select! {
            done = work(&ensemble) => done,
            signal = signals.ending() => Ok(exit::of_signal(signal)),
        };
        let leaving = async {
            ensemble.close().await;
            if let Some(remote) = remote {
                remote.close().await;
            }
            // What was here is ended by then; a failure of that is nobody's.
            let _ = here.close().await;
        };
        // Who can't wait needn't: what is here is killed when we are gone.
        tokio::select! {
            () = leaving => {}
            _ = signals.ending() => {}
        }
        done
    }
}
