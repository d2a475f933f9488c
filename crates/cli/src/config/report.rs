//! Output of `config/read` and `outpost config show`.

use std::collections::BTreeMap;

use outpost_server::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource as Source};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Layers, layers::Entry, settings::nest};
use crate::render::screen::{Screen, Style};

/// The result of `config/read`, with all layers.
pub(crate) fn read_result(layers: &Layers) -> ConfigReadResult {
    let origins = layers.effective().map(|(layer, entry)| {
        let origin = ConfigOrigin {
            name: layer.source.clone(),
            version: version(&config(&layer.entries)),
        };
        (entry.setting.key.clone(), origin)
    });
    let each = layers.iter().map(|layer| {
        let config = config(&layer.entries);
        ConfigLayer {
            name: layer.source.clone(),
            version: version(&config),
            config,
        }
    });
    ConfigReadResult {
        config: config(layers.effective().map(|(_, entry)| entry)),
        origins: origins.collect::<BTreeMap<_, _>>(),
        layers: Some(each.collect()),
    }
}

fn config<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Map<String, Value> {
    let entries = entries.into_iter();
    nest(entries.map(|entry| (entry.setting.key.as_str(), entry.shown.clone())))
}

/// A hash of a layer's masked values. A hash of the secrets themselves could be compared
/// with guesses.
fn version(config: &Map<String, Value>) -> String {
    let hash = Sha256::digest(Value::from(config.clone()).to_string());
    let hex = hash.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", hex.collect::<String>())
}

/// Renders a line for each setting in TOML syntax, aligned. Values other than defaults are
/// highlighted. `origins` adds the origin of each value.
pub(crate) fn table(layers: &Layers, origins: bool, screen: Screen) -> String {
    let rows: Vec<_> = layers
        .effective()
        .map(|(layer, entry)| (entry, toml(&entry.shown), &layer.source))
        .collect();
    let keys = rows.iter().map(|(entry, ..)| entry.setting.key.len());
    let key_width = keys.max().unwrap_or_default();
    let values = rows.iter().map(|(_, value, _)| value.chars().count());
    let value_width = values.max().unwrap_or_default();
    let lines = rows.iter().map(|(entry, value, source)| {
        let mut line = format!("{:key_width$} = {value}", entry.setting.key);
        if origins {
            let pad = value_width - value.chars().count();
            line.push_str(&format!("{:pad$}  # {}", "", origin(source, entry)));
        }
        let style = match source {
            Source::Default => Style::Quiet,
            _ => Style::Bold,
        };
        screen.apply(style, &line) + "\n"
    });
    lines.collect()
}

/// The flag, variable or line that sets the value.
fn origin(source: &Source, entry: &Entry) -> String {
    match source {
        Source::CommandLine => format!("--{}", entry.setting.flag_name().unwrap_or_default()),
        Source::Environment => entry.setting.variable(),
        Source::User { file } | Source::System { file } => match entry.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        },
        Source::Default => "default".to_owned(),
    }
}

/// A value in TOML syntax.
pub(super) fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let is_bare_key = !name.is_empty()
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
                let name = if is_bare_key {
                    name.clone()
                } else {
                    toml(&name.as_str().into())
                };
                format!("{name} = {}", toml(value))
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
