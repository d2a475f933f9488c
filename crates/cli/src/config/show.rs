//! What is in force, as people read it.

use super::{Layers, Source, layer::Entry};

const BOLD: &str = "\x1b[1m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// How to show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    /// With where each value is from.
    pub(crate) origins: bool,
    /// For a terminal that knows colours.
    pub(crate) coloured: bool,
}

impl Show {
    /// A line for each setting, as a file would have it, aligned. What is
    /// somebody's choice stands out.
    pub(crate) fn table(self, layers: &Layers) -> String {
        let rows: Vec<_> = layers
            .effective()
            .map(|(layer, entry)| {
                let value = entry.setting.masked(&entry.value);
                (entry, written(&value), &layer.source)
            })
            .collect();
        let keys = rows.iter().map(|(entry, ..)| entry.setting.key.len());
        let keys = keys.max().unwrap_or_default();
        let values = rows.iter().map(|(_, value, _)| value.chars().count());
        let values = values.max().unwrap_or_default();
        let mut table = String::new();
        for (entry, value, source) in rows {
            let key = entry.setting.key;
            let mut line = format!("{key:keys$} = {value}");
            if self.origins {
                let pad = values - value.chars().count();
                line.push_str(&format!("{:pad$}  # {}", "", origin(source, entry)));
            }
            let style = match source {
                _ if !self.coloured => None,
                Source::Default => Some(FAINT),
                _ => Some(BOLD),
            };
            match style {
                Some(style) => table.push_str(&format!("{style}{line}{PLAIN}\n")),
                None => table.push_str(&format!("{line}\n")),
            }
        }
        table
    }
}

/// Where to change it.
fn origin(source: &Source, entry: &Entry) -> String {
    match source {
        Source::CommandLine => format!("--{}", entry.setting.flag().unwrap_or_default()),
        Source::Environment => entry.setting.variable(),
        Source::User(file) | Source::System(file) => match entry.line {
            Some(line) => format!("{}:{line}", file.display()),
            None => file.display().to_string(),
        },
        Source::Default => "default".to_owned(),
    }
}

/// A value as a file would have it.
pub(crate) fn written(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let items: Vec<_> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        serde_json::Value::Object(members) if members.is_empty() => "{}".to_owned(),
        serde_json::Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let bare = !name.is_empty()
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
                let name = if bare {
                    name.clone()
                } else {
                    written(&name.as_str().into())
                };
                format!("{name} = {}", written(value))
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
