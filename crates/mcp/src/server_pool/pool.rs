//! The pool of all configured servers.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::{
    CallToolResult, JsonObject, ReadResourceResult, Resource, ResourceTemplate, ServerPeerInfo,
    Tool,
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    managed_server::ManagedServer,
    status::{ServerStatus, State},
};
use crate::{
    CallError, Launcher, Limits, Progress,
    config::{Environment, ServerConfig},
};

/// The launchers for both environments.
#[derive(Clone)]
pub struct Launchers {
    /// Starts local servers.
    pub local: Launcher,
    /// Starts remote servers, if a remote executor is configured.
    pub remote: Option<Launcher>,
}

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
        launchers: &Launchers,
        limits: &Limits,
    ) -> Self {
        let cancel = CancellationToken::new();
        let tasks = TaskTracker::new();
        let enabled = servers.into_iter().filter(|(_, config)| config.enabled);
        let servers = enabled.map(|(name, config)| {
            let launcher = match config.environment {
                Environment::Local => Some(launchers.local.clone()),
                Environment::Remote => launchers.remote.clone(),
            };
            let server = ManagedServer::new(name.clone(), config, launcher, limits.clone());
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
            .map(|server| (server.name.clone(), server.state().borrow().status()))
            .collect()
    }

    /// Waits until every server is ready or has failed.
    pub async fn settled(&self) {
        for server in self.servers.values() {
            // The wait can't fail: the pool holds the sender.
            let _ = server.state().wait_for(State::is_settled).await;
        }
    }

    /// Waits until the status of a server differs from `before`, and returns it.
    pub async fn changed(
        &self,
        server: &str,
        before: &ServerStatus,
    ) -> Result<ServerStatus, CallError> {
        let mut state = self.server(server)?.state();
        let differs = |state: &State| {
            std::mem::discriminant(&state.status()) != std::mem::discriminant(before)
        };
        match state.wait_for(differs).await {
            Ok(state) => Ok(state.status()),
            Err(_) => Ok(ServerStatus::Cancelled),
        }
    }

    /// Returns a server's self-description, once it is ready.
    pub async fn about(&self, server: &str) -> Result<Option<ServerPeerInfo>, CallError> {
        Ok(self.server(server)?.session().await?.peer_info())
    }

    /// Lists the tools of a server that its configuration allows.
    pub async fn tools(&self, server: &str) -> Result<Vec<Tool>, CallError> {
        let server = self.server(server)?;
        let mut tools = server.session().await?.tools(server.tool_timeout()).await?;
        tools.retain(|tool| server.config.tools.allows(&tool.name));
        Ok(tools)
    }

    /// Lists the resources of a server.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, CallError> {
        let server = self.server(server)?;
        let session = server.session().await?;
        session.resources(server.tool_timeout()).await
    }

    /// Lists the resource templates of a server.
    pub async fn resource_templates(
        &self,
        server: &str,
    ) -> Result<Vec<ResourceTemplate>, CallError> {
        let server = self.server(server)?;
        let session = server.session().await?;
        session.resource_templates(server.tool_timeout()).await
    }

    /// Reads a resource of a server.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ReadResourceResult, CallError> {
        let server = self.server(server)?;
        let session = server.session().await?;
        session.read_resource(uri, server.tool_timeout()).await
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
        progress: Option<&mpsc::Sender<Progress>>,
    ) -> Result<CallToolResult, CallError> {
        let server = self.server(server)?;
        server.call(tool, arguments, progress).await
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
