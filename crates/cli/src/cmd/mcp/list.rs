//! `outpost mcp list`: lists the configured servers with their tools and resources.

use std::{collections::BTreeMap, io, process::ExitCode};

use outpost_mcp::{
    ServerConfig, ServerPool, ServerStatus,
    model::{Resource, ResourceTemplate, ServerPeerInfo, Tool},
};

use super::servers::ConfiguredServers;
use crate::{
    args::McpList,
    render::{errors, mcp, out, style::Styler},
};

/// A configured server with its status.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) config: ServerConfig,
    pub(crate) status: ListedStatus,
}

/// The status of a server after its start.
pub(crate) enum ListedStatus {
    Disabled,
    Ready(Box<Offering>),
    Failed(String),
    Cancelled,
}

/// Tools and resources of a server.
pub(crate) struct Offering {
    pub(crate) about: Option<ServerPeerInfo>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
}

pub(super) async fn list(args: &McpList) -> anyhow::Result<ExitCode> {
    let configured = ConfiguredServers::load(&args.servers)?;
    let servers = configured.servers.clone();
    if servers.is_empty() && !args.json {
        out::note(
            "no MCP servers are configured; `outpost config path` prints where to configure them",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let lacks_executor = servers
        .values()
        .any(|config| configured.lacks_executor(config));
    configured
        .run(async |pool| {
            let listed = query(pool, servers).await;
            if args.json {
                out::lines([serde_json::to_string_pretty(&mcp::json(&listed))?])?;
            } else {
                let styler = Styler::on(&io::stdout());
                out::lines(mcp::table(&listed, out::width(), styler))?;
            }
            let missing = |server: &Listed| {
                server.config.required && matches!(server.status, ListedStatus::Failed(_))
            };
            Ok(if lacks_executor || listed.iter().any(missing) {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            })
        })
        .await
}

async fn query(pool: &ServerPool, servers: BTreeMap<String, ServerConfig>) -> Vec<Listed> {
    pool.settled().await;
    let mut statuses = pool.statuses();
    let mut listed = Vec::new();
    for (name, config) in servers {
        let status = match statuses.remove(&name) {
            None => ListedStatus::Disabled,
            Some(ServerStatus::Failed(why)) => ListedStatus::Failed(errors::chain_message(&*why)),
            Some(ServerStatus::Cancelled) => ListedStatus::Cancelled,
            Some(ServerStatus::Ready(_) | ServerStatus::Starting) => {
                match offering(pool, &name).await {
                    Ok(offering) => ListedStatus::Ready(Box::new(offering)),
                    Err(error) => ListedStatus::Failed(errors::chain_message(&error)),
                }
            }
        };
        listed.push(Listed {
            name,
            config,
            status,
        });
    }
    listed
}

async fn offering(pool: &ServerPool, name: &str) -> Result<Offering, outpost_mcp::CallError> {
    let session = pool.session(name).await?;
    Ok(Offering {
        about: session.peer_info(),
        tools: pool.tools(name).await?,
        resources: session.resources().await?,
        templates: session.resource_templates().await?,
    })
}
