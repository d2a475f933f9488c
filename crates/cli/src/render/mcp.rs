//! MCP servers and what they answer, for people and for programs.

use outpost_mcp::{
    Progress, ServerConfig,
    config::{Environment, Reach},
    model::{CallToolResult, ContentBlock, ResourceContents},
};
use serde_json::{Value, json};

use super::{
    amount, command_line,
    paint::{Paint, Tone},
    table::{self, Cell},
};
use crate::cmd::mcp::{Listed, Standing};

/// A line for each server, and below them why some of them failed.
pub(crate) fn table(servers: &[Listed], width: Option<usize>, paint: Paint) -> Vec<String> {
    let rows: Vec<_> = servers
        .iter()
        .map(|server| {
            let (status, tone) = status(&server.standing);
            let tools = match &server.standing {
                Standing::Ready(offer) => offer.tools.len().to_string(),
                _ => "-".to_owned(),
            };
            [
                Cell::plain(&server.name),
                tone.map_or_else(|| Cell::plain(status), |tone| Cell::toned(status, tone)),
                Cell::plain(place(&server.config)),
                Cell::plain(tools),
                Cell::plain(reach(&server.config)),
            ]
        })
        .collect();
    let head = ["NAME", "STATUS", "WHERE", "TOOLS", "COMMAND"];
    let mut lines = table::lines(head, &rows, width, paint);
    let reasons: Vec<_> = servers
        .iter()
        .filter_map(|server| match &server.standing {
            Standing::Failed(why) => Some(format!("{}: {why}", paint.dye(Tone::Bad, &server.name))),
            _ => None,
        })
        .collect();
    if !reasons.is_empty() {
        lines.push(String::new());
        lines.extend(reasons);
    }
    lines
}

/// The same for programs, with everything.
pub(crate) fn json(servers: &[Listed]) -> Value {
    servers
        .iter()
        .map(|server| {
            let (status, _) = status(&server.standing);
            let mut entry = json!({
                "name": server.name,
                "status": status,
                "environment": place(&server.config),
                "required": server.config.required,
                "command": reach(&server.config),
                // Lists are always there, so that programs can go through all of them.
                "tools": [],
                "resources": [],
                "resourceTemplates": [],
            });
            match &server.standing {
                Standing::Ready(offer) => {
                    entry["server"] = json!(offer.about);
                    entry["tools"] = json!(offer.tools);
                    entry["resources"] = json!(offer.resources);
                    entry["resourceTemplates"] = json!(offer.templates);
                }
                Standing::Failed(why) => entry["why"] = json!(why),
                Standing::Disabled | Standing::Cancelled => {}
            }
            entry
        })
        .collect()
}

fn status(standing: &Standing) -> (&'static str, Option<Tone>) {
    match standing {
        Standing::Disabled => ("disabled", Some(Tone::Quiet)),
        Standing::Ready(_) => ("ready", Some(Tone::Good)),
        Standing::Failed(_) => ("failed", Some(Tone::Bad)),
        Standing::Cancelled => ("cancelled", Some(Tone::Quiet)),
    }
}

fn place(config: &ServerConfig) -> &'static str {
    match config.environment {
        Environment::Local => "local",
        Environment::Remote => "remote",
    }
}

fn reach(config: &ServerConfig) -> String {
    match &config.reach {
        Reach::Stdio(command) => {
            let words = std::iter::once(&command.program).chain(&command.args);
            let words: Vec<_> = words
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            command_line::quoted(&words)
        }
        Reach::Http(endpoint) => endpoint.url.clone(),
    }
}

/// What a tool has answered. Text is printed as it is, the rest is described.
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
        _ => "[something that isn't known here]".to_owned(),
    }
}

fn described(kind: &str, name: &str, base64: &str) -> String {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{kind} {name}, {}]", amount::amount(bytes as u64))
}

/// How far a call has come.
pub(crate) fn step(step: &Progress) -> String {
    let message = step.message.as_deref().unwrap_or_default();
    let message: String = message
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect();
    match step.total {
        Some(total) => format!("{}/{total} {message}", step.done),
        None => format!("{} {message}", step.done),
    }
}
