//! The pool of all configured servers.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::{CallToolResult, JsonObject, ProgressNotificationParam, Tool};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{ServerStatus, managed_server::ManagedServer};
use crate::{
    CallError, Executors, Limits,
    config::{Environment, ServerConfig},
    session::Session,
};

/// All configured servers. Dropping the pool terminates them; [`ServerPool::close`] also
/// waits for that.
pub struct ServerPool {
    servers: BTreeMap<String, Arc<ManagedServer>>,
    cancel: CancellationToken,
    /// The servers' tasks.
    tasks: TaskTracker,
}

impl ServerPool {
    /// Starts all enabled servers concurrently. Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(
        servers: BTreeMap<String, ServerConfig>,
        executors: &Executors,
        limits: &Limits,
    ) -> Self {
        let cancel = CancellationToken::new();
        let tasks = TaskTracker::new();
        let enabled = servers.into_iter().filter(|(_, config)| config.enabled);
        let servers = enabled.map(|(name, config)| {
            let provider = match config.environment {
                Environment::Local => Some(Arc::clone(&executors.local)),
                Environment::Remote => executors.remote.clone(),
            };
            let server = ManagedServer::new(name.clone(), config, provider, limits);
            let server = Arc::new(server);
            let (task_server, cancel) = (Arc::clone(&server), cancel.clone());
            tasks.spawn(async move { task_server.run(cancel).await });
            (name, server)
        });
        let servers = servers.collect();
        tasks.close();
        ServerPool {
            servers,
            cancel,
            tasks,
        }
    }

    /// Returns the status of each server by name.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<String, ServerStatus> {
        let servers = self.servers.values();
        servers
            .map(|server| (server.name.clone(), server.status.borrow().clone()))
            .collect()
    }

    /// Waits until every server is ready or has failed.
    pub async fn settled(&self) {
        for server in self.servers.values() {
            // The wait can't fail: the pool holds the sender.
            let mut status = server.status.subscribe();
            let _ = status.wait_for(ServerStatus::is_settled).await;
        }
    }

    /// Waits until the status of a server differs from `before`, and returns it.
    pub async fn changed(
        &self,
        server: &str,
        before: &ServerStatus,
    ) -> Result<ServerStatus, CallError> {
        let mut status = self.server(server)?.status.subscribe();
        let differs = |status: &ServerStatus| {
            std::mem::discriminant(status) != std::mem::discriminant(before)
        };
        match status.wait_for(differs).await {
            Ok(status) => Ok(status.clone()),
            Err(_) => Ok(ServerStatus::Cancelled),
        }
    }

    /// Returns the session with a server, once it is ready.
    pub async fn session(&self, server: &str) -> Result<Arc<Session>, CallError> {
        self.server(server)?.session().await
    }

    /// Lists the tools of a server that its configuration allows.
    pub async fn tools(&self, server: &str) -> Result<Vec<Tool>, CallError> {
        let server = self.server(server)?;
        let mut tools = server.session().await?.tools().await?;
        tools.retain(|tool| server.config.tools.allows(&tool.name));
        Ok(tools)
    }

    /// Calls a tool of a server, once the server is ready. Without support for parallel
    /// calls, earlier calls complete first. Dropping the future cancels the call.
    ///
    /// A call is not repeated if the server ends during it: it may have had effects.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<ProgressNotificationParam>>,
    ) -> Result<CallToolResult, CallError> {
        let server = self.server(server)?;
        if !server.config.tools.allows(tool) {
            return Err(CallError::Disabled {
                server: server.name.clone(),
                tool: tool.to_owned(),
            });
        }
        // The wait is bounded: each earlier call has a timeout. The semaphore is never closed.
        let _permit = match &server.call_permit {
            Some(permit) => permit.acquire().await.ok(),
            None => None,
        };
        let session = server.session().await?;
        session.call(tool, arguments, progress).await
    }

    /// Terminates all servers and waits for that.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.tasks.wait().await;
    }

    fn server(&self, name: &str) -> Result<&Arc<ManagedServer>, CallError> {
        let server = self.servers.get(name);
        server.ok_or_else(|| CallError::UnknownServer {
            server: name.to_owned(),
        })
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
