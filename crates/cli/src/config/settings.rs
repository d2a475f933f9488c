//! The list of settings, collected from the default [`Config`], and their values in each source by
//! precedence.

use std::sync::LazyLock;

use anyhow::{Context, ensure};
use clap::{Arg, Args as _, Command};
use indexmap::IndexMap;
use outpost_server::{ConfigSource as Source, Listen};
use serde::Deserialize as _;
use serde_json::{Map, Value, json, value::RawValue};

use super::{Config, sources::parse_toml_value};

pub(super) const VARIABLE_PREFIX: &str = "OUTPOST_";

/// Every setting, in declaration order.
pub(crate) static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let mut settings = Vec::new();
    let defaults = serde_json::to_string(&Config::default());
    collect("", &defaults.expect("the defaults are JSON"), &mut settings);
    let flags = Config::augment_args(Command::new("settings"));
    for setting in &mut settings {
        let name = setting.key.replace(['.', '_'], "-");
        let flag = flags
            .get_arguments()
            .find(|arg| arg.get_long() == Some(&name));
        setting.flag = flag.cloned().map(|flag| flag.id(setting.key.clone()));
    }
    settings
});

/// One setting. The key `log.level` is `level` in the table `[log]` of a file, the
/// variable `OUTPOST_LOG_LEVEL` and the flag `--log-level`.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) default: Value,
    /// The flag as declared in [`Config`], if there is one.
    pub(crate) flag: Option<Arg>,
}

impl Setting {
    pub(crate) fn variable(&self) -> String {
        let name = self.key.replace('.', "_").to_uppercase();
        format!("{VARIABLE_PREFIX}{name}")
    }

    /// The name of its flag, without dashes in front.
    pub(crate) fn flag_name(&self) -> Option<&str> {
        self.flag.as_ref().and_then(Arg::get_long)
    }

    /// Parses the text of a variable or a flag into a value of the default's kind. A text
    /// of another kind becomes a string, which [`Setting::check`] rejects.
    pub(crate) fn parse_text(&self, text: &str) -> Value {
        let trimmed = text.trim();
        let parsed = match self.default {
            Value::Number(_) => text.parse::<u64>().ok().map(Value::from),
            Value::Bool(_) => text.parse::<bool>().ok().map(Value::from),
            Value::Array(_) if trimmed.is_empty() => Some(Value::Array(Vec::new())),
            Value::Array(_) if trimmed.starts_with('[') => parse_toml_value(trimmed),
            Value::Array(_) => Some(trimmed.split(',').map(str::trim).collect()),
            Value::Object(_) if trimmed.is_empty() => Some(Value::Object(Map::new())),
            Value::Object(_) if trimmed.starts_with('{') => parse_toml_value(trimmed),
            Value::Object(_) => trimmed
                .split(',')
                .map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    Some((name.trim().to_owned(), Value::from(value)))
                })
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object),
            Value::String(_) | Value::Null => None,
        };
        parsed.unwrap_or_else(|| Value::from(text))
    }

    /// Parses the values of a flag that was given once or several times.
    pub(crate) fn parse_words(&self, words: &[String]) -> Value {
        if self.default.is_array() {
            return words.iter().map(String::as_str).collect();
        }
        words
            .last()
            .map_or(Value::Null, |word| self.parse_text(word))
    }

    /// Checks a value and returns it as it is shown: in normal form, and masked if it is
    /// a secret.
    pub(crate) fn check(&self, value: &Value) -> Result<Value, serde_json::Error> {
        let config = Config::deserialize(Value::Object(nest([(&*self.key, value.clone())])))?;
        let shown = serde_json::to_value(config)?;
        let pointer = format!("/{}", self.key.replace('.', "/"));
        Ok(shown.pointer(&pointer).cloned().unwrap_or_default())
    }
}

/// The settings that one source contains.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) entries: Vec<Entry>,
}

/// One setting in one source.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) setting: &'static Setting,
    /// The value as written.
    pub(super) value: Value,
    /// The value in normal form, with secrets masked.
    pub(crate) shown: Value,
    /// Line number, if the source is a file.
    pub(crate) line: Option<usize>,
}

impl Layer {
    /// An empty layer.
    pub(crate) fn new(source: Source) -> Self {
        Layer {
            source,
            entries: Vec::new(),
        }
    }

    fn defaults() -> Self {
        let entries = SETTINGS.iter().map(|setting| Entry {
            setting,
            value: setting.default.clone(),
            shown: setting.default.clone(),
            line: None,
        });
        Layer {
            source: Source::Default,
            entries: entries.collect(),
        }
    }

    /// Adds the value of a setting, if it is valid.
    pub(crate) fn set(
        &mut self,
        setting: &'static Setting,
        value: Value,
        line: Option<usize>,
    ) -> Result<(), serde_json::Error> {
        let shown = setting.check(&value)?;
        self.entries.push(Entry {
            setting,
            value,
            shown,
            line,
        });
        Ok(())
    }

    fn entry(&self, setting: &Setting) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.setting.key == setting.key)
    }
}

/// All sources, highest precedence first. The last one, the defaults, has every setting.
#[derive(Clone, Debug)]
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    /// Puts the layers, highest precedence first, over the defaults.
    pub(crate) fn new(mut layers: Vec<Layer>) -> Self {
        layers.push(Layer::defaults());
        let mut layers = Layers(layers);
        if layers.is_launched()
            && let Some(Layer { entries, .. }) = layers.0.last_mut()
            && let Some(level) = entries
                .iter_mut()
                .find(|entry| entry.setting.key == "log.level")
        {
            (level.value, level.shown) = ("warn".into(), "warn".into());
        }
        layers
    }

    /// Whether a program launched the server as its only client. Its stderr is that of the client, where
    /// people read error messages.
    fn is_launched(&self) -> bool {
        let listen = self
            .effective()
            .find(|(_, entry)| entry.setting.key == "listen");
        listen.is_some_and(|(_, entry)| entry.shown == json!([Listen::Stdio.to_string()]))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.0.iter()
    }

    /// For each setting, in declaration order, the entry with the highest precedence.
    pub(crate) fn effective(&self) -> impl Iterator<Item = (&Layer, &Entry)> {
        SETTINGS.iter().filter_map(|setting| {
            self.iter()
                .find_map(|layer| layer.entry(setting).map(|entry| (layer, entry)))
        })
    }

    /// The effective configuration.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let values = self
            .effective()
            .map(|(_, entry)| (entry.setting.key.as_str(), entry.value.clone()));
        // Cannot fail: each layer was checked when it was read.
        let config = Config::deserialize(Value::Object(nest(values)))
            .context("cannot combine the configuration")?;
        let profile = &config.sandbox.default_profile;
        ensure!(
            config.profiles().has(profile),
            "invalid value for sandbox.default_profile = {profile:?}: there is no such profile in \
             sandbox.profiles"
        );
        for (name, principal) in &config.principals {
            let profile = principal.sandbox.as_deref();
            ensure!(
                profile.is_none_or(|profile| config.profiles().has(profile)),
                "invalid value for principals.{name}.sandbox = {:?}: there is no such profile in \
                 sandbox.profiles",
                profile.unwrap_or_default()
            );
        }
        config.check_network_policies()?;
        Ok(config)
    }
}

/// Collects the settings of a serialized table. An empty table is the default of a
/// setting; any other is a table of settings.
fn collect(prefix: &str, table: &str, settings: &mut Vec<Setting>) {
    // An IndexMap keeps the declaration order, which serde_json's Map doesn't.
    let members: IndexMap<String, Box<RawValue>> =
        serde_json::from_str(table).expect("a table is a JSON object");
    for (name, value) in members {
        let key = format!("{prefix}{name}");
        if value.get().starts_with('{') && value.get() != "{}" {
            collect(&format!("{key}."), value.get(), settings);
            continue;
        }
        settings.push(Setting {
            key,
            default: serde_json::from_str(value.get()).expect("a default is JSON"),
            flag: None,
        });
    }
}

/// Puts values into their tables, by key.
pub(crate) fn nest<'a>(values: impl IntoIterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    let mut config = Map::new();
    for (key, value) in values {
        match key.split_once('.') {
            None => {
                config.insert(key.to_owned(), value);
            }
            Some((table, key)) => {
                let table = config.entry(table).or_insert_with(|| Map::new().into());
                if let Value::Object(table) = table {
                    table.insert(key.to_owned(), value);
                }
            }
        }
    }
    config
}

/// The known name that is closest to `name`, if one is close. Dots, underscores and
/// dashes are equal: `log_level` is close to the key `log.level`.
pub(crate) fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let fold = |name: &str| name.replace(['.', '-'], "_").to_lowercase();
    let wanted = fold(name);
    known
        .map(|candidate| {
            let folded = fold(&candidate);
            let last = folded.rsplit('_').next().unwrap_or_default();
            let distance = if last == wanted {
                1
            } else {
                strsim::damerau_levenshtein(&wanted, &folded)
            };
            (distance, candidate)
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= wanted.chars().count().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use outpost_engine::Ttl;
    use serde_json::json;

    use super::*;
    use crate::config::{
        show::toml,
        sources::{environment_layer, file_layer},
    };

    pub(crate) fn layer_of(source: Source, text: &str) -> Layer {
        file_layer(source, Path::new("o.toml"), text).unwrap()
    }

    /// Five sources with different values.
    pub(crate) fn five() -> Layers {
        let mut flags = Layer::new(Source::CommandLine);
        let listen = &SETTINGS[0];
        flags.set(listen, json!(["stdio://"]), None).unwrap();
        let variables = [
            ("OUTPOST_LISTEN", "ws://127.0.0.1:1"),
            ("OUTPOST_MAX_SESSIONS", "2"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        Layers::new(vec![
            flags,
            environment_layer(variables).unwrap(),
            layer_of(
                Source::User {
                    file: "/u/o.toml".to_owned(),
                },
                "max_sessions = 3\nretain_bytes = 3\nmax_session_ttl = \"unlimited\"",
            ),
            layer_of(
                Source::System {
                    file: "/etc/o.toml".to_owned(),
                },
                "retain_bytes = 4\nwindow_bytes = 4\nlisten = [\"ws://127.0.0.1:4\"]",
            ),
        ])
    }

    #[test]
    fn highest_layer_with_a_value_wins() {
        let config = five().config().unwrap();
        let (limits, defaults) = (config.limits(), Config::default().limits());
        assert_eq!(config.listen, [outpost_server::Listen::Stdio]);
        assert_eq!(limits.max_sessions, 2);
        assert_eq!(limits.retain_bytes, 3);
        assert_eq!(limits.window_bytes, 4);
        assert_eq!(
            config.server_settings().unwrap().max_session_ttl,
            Ttl::Unlimited
        );
        assert_eq!(limits.max_processes, defaults.max_processes);
    }

    #[test]
    fn defaults_survive_a_round_trip_through_a_file() {
        let lines = SETTINGS.iter().map(|setting| {
            assert_eq!(setting.check(&setting.default).unwrap(), setting.default);
            format!("{} = {}\n", setting.key, toml(&setting.default))
        });
        let text: String = lines.collect();
        let layer = layer_of(Source::Environment, &text);
        let values: Vec<_> = layer.entries.iter().map(|entry| &entry.shown).collect();
        let defaults: Vec<_> = SETTINGS.iter().map(|setting| &setting.default).collect();
        assert_eq!(values, defaults);
    }

    #[test]
    fn nearest_finds_typos_and_ignores_unrelated_names() {
        let known = ["retain_bytes", "log.level", "max_sessions", "log.format"];
        let near = |name| nearest(name, known.iter().map(|name| (*name).to_owned()));
        assert_eq!(near("retain_byte").as_deref(), Some("retain_bytes"));
        assert_eq!(near("retian_bytes").as_deref(), Some("retain_bytes"));
        assert_eq!(near("log_level").as_deref(), Some("log.level"));
        assert_eq!(near("max-session").as_deref(), Some("max_sessions"));
        assert_eq!(near("format").as_deref(), Some("log.format"));
        assert_eq!(near("colour"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn every_declared_flag_belongs_to_a_setting() {
        let flags = Config::augment_args(Command::new("settings"));
        let found = SETTINGS.iter().filter(|setting| setting.flag.is_some());
        assert_eq!(found.count(), flags.get_arguments().count());
    }

    #[test]
    fn every_setting_is_documented() {
        let page = include_str!("../../../../docs/configuration.md");
        for setting in SETTINGS.iter() {
            let flag = match setting.flag_name() {
                Some(flag) => format!("`--{flag}`"),
                None => "none".to_owned(),
            };
            let row = format!(
                "| `{}` | `{}` | {flag} | `{}` | ",
                setting.key,
                setting.variable(),
                toml(&setting.default),
            );
            assert!(page.contains(&row), "docs/configuration.md lacks {row:?}");
        }
        let rows = page.lines().filter(|line| line.contains("| `OUTPOST_"));
        assert_eq!(rows.count(), SETTINGS.len(), "and has one too many");
    }
}
