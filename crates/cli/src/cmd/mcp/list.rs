//! `outpost mcp list`: lists the configured servers with their tools and resources.

use std::process::ExitCode;

use outpost_mcp::{
    CallError, ServerConfig, ServerPool, ServerStatus,
    config::{Environment, TransportConfig},
};
use serde_json::{Value, json};

use super::servers::{ConfiguredServers, McpConfigArgs};
use crate::render::{
    command_line, errors, out,
    screen::{Cell, Screen, Style},
    visible::visible,
};

/// Arguments of `outpost mcp list`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp list
  outpost mcp list --on ws://127.0.0.1:7777
  outpost mcp list --json | jq '.[].tools[].name'")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) servers: McpConfigArgs,

    /// Print JSON with all details of each tool and resource
    #[arg(long)]
    pub(crate) json: bool,
}

/// The status of a configured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListedStatus {
    Disabled,
    Cancelled,
    Ready,
    /// It did not start, or did not list its tools and resources.
    Failed,
}

impl ListedStatus {
    fn name(self) -> &'static str {
        match self {
            ListedStatus::Disabled => "disabled",
            ListedStatus::Cancelled => "cancelled",
            ListedStatus::Ready => "ready",
            ListedStatus::Failed => "failed",
        }
    }

    fn style(self) -> Style {
        match self {
            ListedStatus::Disabled | ListedStatus::Cancelled => Style::Quiet,
            ListedStatus::Ready => Style::Good,
            ListedStatus::Failed => Style::Bad,
        }
    }
}

/// A configured server with its status.
struct Listed {
    name: String,
    config: ServerConfig,
    status: ListedStatus,
    /// Members of its JSON: tools and resources of a server that is ready, `why` if it failed.
    details: Value,
}

/// Starts all configured servers, and prints them.
pub(super) async fn list(args: &List) -> anyhow::Result<ExitCode> {
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
            pool.wait_started().await;
            let mut statuses = pool.statuses();
            let mut listed = Vec::new();
            for (name, config) in servers {
                let status = statuses.remove(&name);
                listed.push(query(pool, name, config, status).await);
            }
            if args.json {
                out::json(&listed.iter().map(entry).collect::<Vec<_>>())?;
            } else {
                out::raw_lines(table(&listed, Screen::stdout()))?;
            }
            let missing =
                |server: &Listed| server.config.required && server.status == ListedStatus::Failed;
            Ok(if lacks_executor || listed.iter().any(missing) {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            })
        })
        .await
}

async fn query(
    pool: &ServerPool,
    name: String,
    config: ServerConfig,
    status: Option<ServerStatus>,
) -> Listed {
    let failed = |why: String| (ListedStatus::Failed, json!({"why": why}));
    let (status, details) = match status {
        None => (ListedStatus::Disabled, json!({})),
        Some(ServerStatus::Cancelled) => (ListedStatus::Cancelled, json!({})),
        Some(ServerStatus::Failed(why)) => failed(errors::chain_message(&*why)),
        Some(ServerStatus::Ready(_) | ServerStatus::Starting) => match offers(pool, &name).await {
            Ok(offering) => (ListedStatus::Ready, offering),
            Err(error) => failed(errors::chain_message(&error)),
        },
    };
    Listed {
        name,
        config,
        status,
        details,
    }
}

/// Tools and resources of a server.
async fn offers(pool: &ServerPool, name: &str) -> Result<Value, CallError> {
    let session = pool.session(name).await?;
    Ok(json!({
        "server": session.peer_info(),
        "tools": pool.tools(name).await?,
        "resources": session.resources().await?,
        "resourceTemplates": session.resource_templates().await?,
    }))
}

/// A table of servers, followed by the reasons of failures.
fn table(servers: &[Listed], screen: Screen) -> Vec<String> {
    let rows = servers.iter().map(|server| {
        let tools = server.details["tools"].as_array();
        [
            Cell::plain(&server.name),
            Cell::styled(server.status.name(), server.status.style()),
            Cell::plain(place(&server.config)),
            Cell::plain(tools.map_or("-".to_owned(), |tools| tools.len().to_string())),
            Cell::plain(reach(&server.config)),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let mut lines = screen.table(["NAME", "STATUS", "WHERE", "TOOLS", "COMMAND"], &rows);
    let reasons = servers.iter().filter_map(|server| {
        let why = server.details["why"].as_str()?;
        let name = screen.apply(Style::Bad, &server.name);
        Some(format!("{name}: {}", visible(why)))
    });
    let reasons: Vec<_> = reasons.collect();
    if !reasons.is_empty() {
        lines.push(String::new());
        lines.extend(reasons);
    }
    lines
}

/// All details as JSON.
fn entry(server: &Listed) -> Value {
    let mut entry = json!({
        "name": server.name,
        "status": server.status.name(),
        "environment": place(&server.config),
        "required": server.config.required,
        "command": reach(&server.config),
        // The lists are always present, so that programs can iterate over them.
        "tools": [],
        "resources": [],
        "resourceTemplates": [],
    });
    if let (Some(entry), Some(details)) = (entry.as_object_mut(), server.details.as_object()) {
        entry.extend(details.clone());
    }
    entry
}

fn place(config: &ServerConfig) -> &'static str {
    match config.environment {
        Environment::Local => "local",
        Environment::Remote => "remote",
    }
}

fn reach(config: &ServerConfig) -> String {
    match &config.transport {
        TransportConfig::Stdio(command) => {
            let args = std::iter::once(&command.program).chain(&command.args);
            let args: Vec<_> = args
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            command_line::quoted(&args)
        }
        TransportConfig::Http(endpoint) => endpoint.url.clone(),
    }
}
