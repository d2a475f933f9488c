//! `outpost mcp call`: calls a tool.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context, bail};
use outpost_mcp::{
    CallError, EndReason, ServerPool,
    model::{JsonObject, ProgressNotificationParam},
};
use tokio::sync::mpsc;

use super::servers::ConfiguredServers;
use crate::{
    args::McpCall,
    exit,
    render::{mcp, out},
};

/// Maximum size of arguments read from stdin.
const MAX_ARGUMENTS: u64 = 8 * 1024 * 1024;
/// Maximum number of progress notifications waiting to be shown; more are dropped.
const MAX_QUEUED_PROGRESS: usize = 16;

pub(super) async fn call(args: &McpCall) -> anyhow::Result<ExitCode> {
    let arguments = match arguments(&args.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Ok(exit::misuse(&format!("{error:#}"))),
    };
    let mut configured = ConfiguredServers::load(&args.servers)?;
    configured.servers.retain(|name, _| *name == args.server);
    let Some(config) = configured.servers.get_mut(&args.server) else {
        bail!(
            "there is no MCP server {}; `outpost mcp list` lists the configured servers",
            args.server
        );
    };
    if !config.enabled {
        bail!(
            "MCP server {0} is disabled; set `enabled = true` in [mcp_servers.{0}] to use it",
            args.server
        );
    }
    config.tool_timeout = args.timeout.map(|time| time.0).or(config.tool_timeout);
    configured
        .run(async |pool| call_tool(args, pool, arguments).await)
        .await
}

async fn call_tool(
    args: &McpCall,
    pool: &ServerPool,
    arguments: JsonObject,
) -> anyhow::Result<ExitCode> {
    let (progress, mut steps) = mpsc::channel(MAX_QUEUED_PROGRESS);
    let shown = io::stderr().is_terminal();
    let call = pool.call(&args.server, &args.tool, arguments, Some(&progress));
    tokio::pin!(call);
    let result = loop {
        tokio::select! {
            result = &mut call => break result,
            Some(step) = steps.recv() => {
                if shown {
                    show(&step);
                }
            }
        }
    };
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let result = match result {
        Ok(result) => result,
        Err(CallError::Ended(EndReason::Lost { reason })) => return Ok(exit::unreachable(&reason)),
        Err(error) => {
            let what = format!("cannot call {} of {}", args.tool, args.server);
            return Err(anyhow::Error::new(error).context(what));
        }
    };
    if args.json {
        out::lines([serde_json::to_string_pretty(&result)?])?;
    } else {
        out::lines(mcp::result(&result))?;
    }
    Ok(match result.is_error {
        Some(true) => exit::of_tool(),
        _ => ExitCode::SUCCESS,
    })
}

/// Replaces the previous progress line.
fn show(step: &ProgressNotificationParam) {
    let _ = write!(io::stderr(), "\r\x1b[K{}", mcp::step(step));
}

fn arguments(text: &str) -> anyhow::Result<JsonObject> {
    let text = match text {
        "-" => {
            let mut text = String::new();
            let read = io::stdin().take(MAX_ARGUMENTS).read_to_string(&mut text);
            read.context("cannot read the arguments from stdin")?;
            text
        }
        text => text.to_owned(),
    };
    serde_json::from_str(&text).context("cannot parse the arguments: expected a JSON object")
}
