//! Output of `outpost mcp`.

use outpost_mcp::{
    ServerConfig,
    config::{Environment, TransportConfig},
    model::{CallToolResult, ContentBlock, ProgressNotificationParam, ResourceContents},
};
use serde_json::{Value, json};

use super::{
    byte_size, command_line,
    style::{Style, Styler},
    table::{self, Cell},
};
use crate::cmd::mcp::{Listed, ListedStatus};

/// A table of servers, followed by the reasons of failures.
pub(crate) fn table(servers: &[Listed], width: Option<usize>, styler: Styler) -> Vec<String> {
    let rows: Vec<_> = servers
        .iter()
        .map(|server| {
            let (status, style) = status(&server.status);
            let tools = match &server.status {
                ListedStatus::Ready(offering) => offering.tools.len().to_string(),
                _ => "-".to_owned(),
            };
            [
                Cell::plain(&server.name),
                style.map_or_else(|| Cell::plain(status), |style| Cell::styled(status, style)),
                Cell::plain(place(&server.config)),
                Cell::plain(tools),
                Cell::plain(reach(&server.config)),
            ]
        })
        .collect();
    let head = ["NAME", "STATUS", "WHERE", "TOOLS", "COMMAND"];
    let mut lines = table::lines(head, &rows, width, styler);
    let reasons: Vec<_> = servers
        .iter()
        .filter_map(|server| match &server.status {
            ListedStatus::Failed(why) => {
                Some(format!("{}: {why}", styler.apply(Style::Bad, &server.name)))
            }
            _ => None,
        })
        .collect();
    if !reasons.is_empty() {
        lines.push(String::new());
        lines.extend(reasons);
    }
    lines
}

/// All details as JSON.
pub(crate) fn json(servers: &[Listed]) -> Value {
    servers
        .iter()
        .map(|server| {
            let (status, _) = status(&server.status);
            let mut entry = json!({
                "name": server.name,
                "status": status,
                "environment": place(&server.config),
                "required": server.config.required,
                "command": reach(&server.config),
                // The lists are always present, so that programs can iterate over them.
                "tools": [],
                "resources": [],
                "resourceTemplates": [],
            });
            match &server.status {
                ListedStatus::Ready(offering) => {
                    entry["server"] = json!(offering.about);
                    entry["tools"] = json!(offering.tools);
                    entry["resources"] = json!(offering.resources);
                    entry["resourceTemplates"] = json!(offering.templates);
                }
                ListedStatus::Failed(why) => entry["why"] = json!(why),
                ListedStatus::Disabled | ListedStatus::Cancelled => {}
            }
            entry
        })
        .collect()
}

fn status(status: &ListedStatus) -> (&'static str, Option<Style>) {
    match status {
        ListedStatus::Disabled => ("disabled", Some(Style::Quiet)),
        ListedStatus::Ready(_) => ("ready", Some(Style::Good)),
        ListedStatus::Failed(_) => ("failed", Some(Style::Bad)),
        ListedStatus::Cancelled => ("cancelled", Some(Style::Quiet)),
    }
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

/// The result of a tool call. Text is printed as it is; other content is described.
pub(crate) fn result(result: &CallToolResult) -> Vec<String> {
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
    format!("[{kind} {name}, {}]", byte_size::byte_size(bytes as u64))
}

/// A progress notification on one line.
pub(crate) fn step(step: &ProgressNotificationParam) -> String {
    let message = step.message.as_deref().unwrap_or_default();
    let message: String = message
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect();
    match step.total {
        Some(total) => format!("{}/{total} {message}", step.progress),
        None => format!("{} {message}", step.progress),
    }
}
