//! `outpost mcp list`: the configured servers, and what they can do.

use std::{collections::BTreeMap, io, process::ExitCode};

use outpost_mcp::{
    Ensemble, ServerConfig, Status,
    model::{Resource, ResourceTemplate, ServerPeerInfo, Tool},
};

use super::company::Company;
use crate::{
    args::McpList,
    render::{mcp, out, paint::Paint, words},
};

/// A server with what it has.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) config: ServerConfig,
    pub(crate) standing: Standing,
}

/// How a server stands, when it has been waited for.
pub(crate) enum Standing {
    Disabled,
    Ready(Box<Offer>),
    Failed(String),
    Cancelled,
}

/// What a server has.
pub(crate) struct Offer {
    pub(crate) about: Option<ServerPeerInfo>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
}

pub(super) async fn list(args: &McpList) -> anyhow::Result<ExitCode> {
    let company = Company::of(&args.servers)?;
    let servers = company.servers.clone();
    if servers.is_empty() && !args.json {
        out::note("no MCP servers are configured; `outpost config path` says where to");
        return Ok(ExitCode::SUCCESS);
    }
    let nowhere = servers.values().any(|config| company.is_nowhere(config));
    company
        .perform(async |ensemble| {
            let listed = look(ensemble, servers).await;
            if args.json {
                out::lines([serde_json::to_string_pretty(&mcp::json(&listed))?])?;
            } else {
                let paint = Paint::on(&io::stdout());
                out::lines(mcp::table(&listed, out::width(), paint))?;
            }
            let missing = |server: &Listed| {
                server.config.required && matches!(server.standing, Standing::Failed(_))
            };
            Ok(match nowhere || listed.iter().any(missing) {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            })
        })
        .await
}

async fn look(ensemble: &Ensemble, servers: BTreeMap<String, ServerConfig>) -> Vec<Listed> {
    ensemble.settled().await;
    let mut statuses = ensemble.statuses();
    let mut listed = Vec::new();
    for (name, config) in servers {
        let standing = match statuses.remove(&name) {
            None => Standing::Disabled,
            Some(Status::Failed(why)) => Standing::Failed(words::of_error(&*why)),
            Some(Status::Cancelled) => Standing::Cancelled,
            Some(Status::Ready | Status::Starting) => match offer(ensemble, &name).await {
                Ok(offer) => Standing::Ready(Box::new(offer)),
                Err(error) => Standing::Failed(words::of_error(&error)),
            },
        };
        listed.push(Listed {
            name,
            config,
            standing,
        });
    }
    listed
}

async fn offer(ensemble: &Ensemble, name: &str) -> Result<Offer, outpost_mcp::CallError> {
    Ok(Offer {
        about: ensemble.about(name).await?,
        tools: ensemble.tools(name).await?,
        resources: ensemble.resources(name).await?,
        templates: ensemble.resource_templates(name).await?,
    })
}
