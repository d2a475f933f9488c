//! All configured servers, for those who use them.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::{
    CallToolResult, JsonObject, ReadResourceResult, Resource, ResourceTemplate, ServerPeerInfo,
    Tool,
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    member::Member,
    status::{State, Status},
};
use crate::{
    CallError, Launcher, Limits, Progress,
    config::{Environment, ServerConfig},
};

/// Who starts servers.
#[derive(Clone)]
pub struct Launchers {
    /// Those that run here.
    pub local: Arc<dyn Launcher>,
    /// Those that run remotely, if there is a place for that.
    pub remote: Option<Arc<dyn Launcher>>,
}

/// All configured servers. Dropping it ends them; [`Ensemble::close`] does so in
/// good order.
pub struct Ensemble {
    members: BTreeMap<String, Arc<Member>>,
    unwanted: CancellationToken,
    /// The members' tasks.
    tasks: TaskTracker,
}

impl Ensemble {
    /// Starts all servers that are enabled, at once. Must be called inside a
    /// tokio runtime.
    #[must_use]
    pub fn start(
        servers: BTreeMap<String, ServerConfig>,
        launchers: &Launchers,
        limits: &Limits,
    ) -> Self {
        let unwanted = CancellationToken::new();
        let tasks = TaskTracker::new();
        let enabled = servers.into_iter().filter(|(_, config)| config.enabled);
        let members = enabled.map(|(name, config)| {
            let launcher = match config.environment {
                Environment::Local => Some(Arc::clone(&launchers.local)),
                Environment::Remote => launchers.remote.clone(),
            };
            let member = Member::new(name.clone(), config, launcher, limits.clone());
            let member = Arc::new(member);
            let (living, unwanted) = (Arc::clone(&member), unwanted.clone());
            tasks.spawn(async move { living.live(unwanted).await });
            (name, member)
        });
        let members = members.collect();
        tasks.close();
        Ensemble {
            members,
            unwanted,
            tasks,
        }
    }

    /// How each of them stands, by name.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<String, Status> {
        let members = self.members.values();
        members
            .map(|member| (member.name.clone(), member.state().borrow().status()))
            .collect()
    }

    /// Waits until it is known of each whether it can be used.
    pub async fn settled(&self) {
        for member in self.members.values() {
            // The member is ours, so its state goes on.
            let _ = member.state().wait_for(State::is_settled).await;
        }
    }

    /// Waits until a server stands differently from before, and says how.
    pub async fn changed(&self, server: &str, before: &Status) -> Result<Status, CallError> {
        let mut state = self.member(server)?.state();
        let differs = |state: &State| {
            std::mem::discriminant(&state.status()) != std::mem::discriminant(before)
        };
        match state.wait_for(differs).await {
            Ok(state) => Ok(state.status()),
            Err(_) => Ok(Status::Cancelled),
        }
    }

    /// What a server says of itself, once it is ready.
    pub async fn about(&self, server: &str) -> Result<Option<ServerPeerInfo>, CallError> {
        Ok(self.member(server)?.session().await?.about())
    }

    /// The tools of a server that its configuration allows.
    pub async fn tools(&self, server: &str) -> Result<Vec<Tool>, CallError> {
        let member = self.member(server)?;
        let mut tools = member.session().await?.tools(member.tool_timeout()).await?;
        tools.retain(|tool| member.config.tools.allows(&tool.name));
        Ok(tools)
    }

    /// The resources of a server.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, CallError> {
        let member = self.member(server)?;
        let session = member.session().await?;
        session.resources(member.tool_timeout()).await
    }

    /// The templates of a server's resources.
    pub async fn resource_templates(
        &self,
        server: &str,
    ) -> Result<Vec<ResourceTemplate>, CallError> {
        let member = self.member(server)?;
        let session = member.session().await?;
        session.resource_templates(member.tool_timeout()).await
    }

    /// A resource of a server.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ReadResourceResult, CallError> {
        let member = self.member(server)?;
        let session = member.session().await?;
        session.read_resource(uri, member.tool_timeout()).await
    }

    /// Calls a tool of a server, once that is ready and, unless it supports
    /// parallel calls, has answered those before. Dropping the call calls it
    /// off. A call that was under way when its server ended isn't repeated:
    /// nobody knows how far it came.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<Progress>>,
    ) -> Result<CallToolResult, CallError> {
        let member = self.member(server)?;
        member.call(tool, arguments, progress).await
    }

    /// Ends all servers, and waits for that.
    pub async fn close(&self) {
        self.unwanted.cancel();
        self.tasks.wait().await;
    }

    fn member(&self, server: &str) -> Result<&Arc<Member>, CallError> {
        let member = self.members.get(server);
        member.ok_or_else(|| CallError::UnknownServer {
            server: server.to_owned(),
        })
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        self.unwanted.cancel();
    }
}
