//! `outpost mcp call`: a tool, once.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context, bail};
use outpost_mcp::{CallError, Ensemble, Fault, Progress, model::JsonObject};
use tokio::sync::mpsc;

use super::company::Company;
use crate::{
    args::McpCall,
    exit,
    render::{mcp, out},
};

/// Nobody types so much.
const MAX_ARGUMENTS: u64 = 8 * 1024 * 1024;
/// Steps that wait to be shown; what is beyond them is left out.
const STEPS: usize = 16;

pub(super) async fn call(args: &McpCall) -> anyhow::Result<ExitCode> {
    let arguments = match arguments(&args.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Ok(exit::misuse(&format!("{error:#}"))),
    };
    let mut company = Company::of(&args.servers)?;
    company.servers.retain(|name, _| *name == args.server);
    let Some(config) = company.servers.get_mut(&args.server) else {
        bail!(
            "there is no MCP server {}; `outpost mcp list` shows those that are configured",
            args.server
        );
    };
    if !config.enabled {
        bail!(
            "MCP server {0} is disabled; `enabled = true` in [mcp_servers.{0}] changes that",
            args.server
        );
    }
    config.tool_timeout = args.timeout.map(|time| time.0).or(config.tool_timeout);
    company
        .perform(async |ensemble| called(args, ensemble, arguments).await)
        .await
}

async fn called(
    args: &McpCall,
    ensemble: &Ensemble,
    arguments: JsonObject,
) -> anyhow::Result<ExitCode> {
    let (progress, mut steps) = mpsc::channel(STEPS);
    let shown = io::stderr().is_terminal();
    let call = ensemble.call(&args.server, &args.tool, arguments, Some(&progress));
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
        Err(CallError::Ended(Fault::Lost { reason })) => return Ok(exit::out_of_reach(&reason)),
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

/// In the place of the step before.
fn show(step: &Progress) {
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
    serde_json::from_str(&text).context("the arguments are no JSON object")
}
