//! `outpost mcp call`: calls a tool.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use outpost_mcp::{
    CallError, EndReason, ServerPool,
    model::{
        CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ResourceContents,
    },
};
use tokio::sync::mpsc;

use super::servers::{ConfiguredServers, McpConfigArgs};
use crate::{
    exit,
    render::{
        out,
        visible::{visible, visible_lines},
    },
    units::{byte_size, parse_time},
};

/// Maximum size of arguments read from stdin.
const MAX_ARGUMENTS: u64 = 8 * 1024 * 1024;
/// Maximum number of progress notifications waiting to be shown; more are dropped.
const MAX_QUEUED_PROGRESS: usize = 16;
/// Maximum length of the message on the progress line.
const MAX_MESSAGE_CHARS: usize = 60;

/// Arguments of `outpost mcp call`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp call everything echo '{\"message\": \"hello\"}'
  outpost mcp call time get_current_time '{\"timezone\": \"UTC\"}' --json
  jq -n '{a: 2, b: 3}' | outpost mcp call everything get-sum -")]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) servers: McpConfigArgs,

    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Timeout of the call, instead of the configured one
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// The server
    pub(crate) server: String,

    /// The tool
    pub(crate) tool: String,

    /// The arguments as a JSON object, or `-` to read them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
}

/// Calls the tool, and prints its result.
pub(super) async fn call(args: &Call) -> anyhow::Result<ExitCode> {
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
    config.tool_timeout = args.timeout.or(config.tool_timeout);
    configured
        .run(async |pool| call_tool(args, pool, arguments).await)
        .await
}

async fn call_tool(
    args: &Call,
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
        Err(CallError::Ended(EndReason::Lost { reason })) => {
            out::note(&reason);
            return Ok(ExitCode::from(exit::UNREACHABLE));
        }
        Err(error) => {
            let what = format!("cannot call {} of {}", args.tool, args.server);
            return Err(anyhow::Error::new(error).context(what));
        }
    };
    if args.json {
        out::json(&result)?;
    } else if io::stdout().is_terminal() {
        out::raw_lines(lines(&result).iter().map(|text| visible_lines(text)))?;
    } else {
        // Programs need the text as it is.
        out::raw_lines(lines(&result))?;
    }
    Ok(match result.is_error {
        Some(true) => ExitCode::from(exit::TOOL_FAILED),
        _ => ExitCode::SUCCESS,
    })
}

/// Replaces the previous progress line.
fn show(step: &ProgressNotificationParam) {
    let message = visible(step.message.as_deref().unwrap_or_default());
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    let total = step
        .total
        .map_or(String::new(), |total| format!("/{total}"));
    let _ = write!(io::stderr(), "\r\x1b[K{}{total} {message}", step.progress);
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

/// The result of a tool call: its text, and descriptions of other content.
fn lines(result: &CallToolResult) -> Vec<String> {
    let mut lines: Vec<String> = result.content.iter().map(block).collect();
    if lines.is_empty()
        && let Some(structured) = &result.structured_content
    {
        lines.push(format!("{structured:#}"));
    }
    lines
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => described("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => described("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                described("resource", uri, blob)
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link {} {}]", link.uri, link.name),
        _ => "[unknown content]".to_owned(),
    }
}

fn described(kind: &str, name: &str, base64: &str) -> String {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{kind} {name}, {}]", byte_size(bytes as u64))
}
