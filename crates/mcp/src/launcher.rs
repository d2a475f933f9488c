//! Starts MCP servers on an executor.

use std::sync::Arc;

use outpost_client::{Executor, Pending};

use crate::{Command, CommandError, Limits, ProcessTransport, config::Environment, shutdown};

/// Provides the executor on which processes run, and reconnects if it was lost.
pub trait ExecutorProvider: Send + Sync {
    /// Returns the executor. Returns the same `Arc` as long as the executor is the same.
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>>;
}

/// An executor that never changes.
impl ExecutorProvider for Arc<dyn Executor> {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        let executor = Arc::clone(self);
        Box::pin(async move { Ok(executor) })
    }
}

/// Starts MCP servers as processes of an executor.
///
/// Closing the transport asks the server to exit; 2 s after SIGTERM it is killed.
#[derive(Clone)]
pub struct Launcher {
    provider: Arc<dyn ExecutorProvider>,
    environment: Environment,
}

/// Reasons why a server process could not be started.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command is invalid.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The executor is unreachable, or failed to start the process.
    #[error("cannot start the server")]
    Executor(#[from] outpost_client::Error),
}

impl Launcher {
    /// Starts servers as children of this process, on its local executor.
    #[must_use]
    pub fn local(executor: Arc<dyn Executor>) -> Self {
        Launcher {
            provider: Arc::new(executor),
            environment: Environment::Local,
        }
    }

    /// Starts servers on a remote executor.
    #[must_use]
    pub fn remote(provider: Arc<dyn ExecutorProvider>) -> Self {
        Launcher {
            provider,
            environment: Environment::Remote,
        }
    }

    /// Starts a server. `name` identifies it in log lines. Dropping the future undoes
    /// the start.
    pub async fn launch(
        &self,
        name: &str,
        command: &Command,
        limits: &Limits,
    ) -> Result<ProcessTransport, LaunchError> {
        let executor = self.executor().await?;
        let local_variable = |name: &str| std::env::var_os(name);
        let start = match self.environment {
            Environment::Local => command.local_start(local_variable)?,
            Environment::Remote => command.remote_start(local_variable)?,
        };
        let process = shutdown::start_with_grace(&*executor, start).await?;
        Ok(ProcessTransport::new(name, process, limits))
    }

    /// Returns the executor. HTTP servers are called from it.
    pub(crate) async fn executor(&self) -> Result<Arc<dyn Executor>, LaunchError> {
        Ok(self.provider.executor().await?)
    }
}
