//! Precedence and origins of settings; output of `config/read` and `outpost config show`, with
//! secrets masked.

use anyhow::{Context, ensure};
use outpost_server::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource as Source};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Config, SETTINGS,
    settings::{Setting, nest},
};
use crate::render::screen::{Screen, Style};

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
        Layers(layers)
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
            "cannot use sandbox.default_profile = {profile:?}: there is no such profile in \
             sandbox.profiles"
        );
        Ok(config)
    }
}

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
        origins: origins.collect(),
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
pub(crate) fn table(layers: &Layers, origins: bool, screen: Screen) -> Vec<String> {
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
        screen.apply(style, &line)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outpost_engine::Ttl;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        config::sources::{environment_layer, file_layer},
        render::screen::Screen,
    };

    fn layer_of(source: Source, text: &str) -> Layer {
        file_layer(source, Path::new("o.toml"), text).unwrap()
    }

    /// Five sources with different values.
    fn five() -> Layers {
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
        assert_eq!(config.server_settings().max_session_ttl, Ttl::Unlimited);
        assert_eq!(limits.max_processes, defaults.max_processes);
    }

    #[test]
    fn read_result_has_origins_and_layers_in_order() {
        let result = read_result(&five());
        assert_eq!(result.config["retain_bytes"], 3);
        assert_eq!(result.config["log"]["level"], "info");
        let origin = |key: &str| serde_json::to_value(&result.origins[key].name).unwrap();
        assert_eq!(origin("listen"), json!({"type": "commandLine"}));
        assert_eq!(origin("max_sessions"), json!({"type": "environment"}));
        assert_eq!(
            origin("retain_bytes"),
            json!({"type": "user", "file": "/u/o.toml"})
        );
        assert_eq!(
            origin("window_bytes"),
            json!({"type": "system", "file": "/etc/o.toml"})
        );
        assert_eq!(origin("log.level"), json!({"type": "default"}));
        assert_eq!(result.origins.len(), SETTINGS.len());

        let layers = result.layers.unwrap();
        let configs: Vec<_> = layers[..4]
            .iter()
            .map(|layer| Value::from(layer.config.clone()))
            .collect();
        assert_eq!(
            configs,
            [
                json!({"listen": ["stdio://"]}),
                json!({"listen": ["ws://127.0.0.1:1"], "max_sessions": 2}),
                json!({"max_sessions": 3, "retain_bytes": 3, "max_session_ttl": "unlimited"}),
                json!({"listen": ["ws://127.0.0.1:4"], "retain_bytes": 4, "window_bytes": 4}),
            ]
        );
        assert_eq!(layers.len(), 5);
        let user = &result.origins["retain_bytes"];
        assert_eq!(
            (&user.name, &user.version),
            (&layers[2].name, &layers[2].version)
        );
        assert_ne!(layers[2].version, layers[3].version);
    }

    #[test]
    fn table_is_aligned_and_names_origins() {
        let lines = table(&five(), true, Screen::FILE);
        insta::assert_snapshot!(lines[..4].join("\n"), @r#"
        listen                                           = ["stdio://"]  # --listen
        retain_bytes                                     = 3             # /u/o.toml:2
        window_bytes                                     = 4             # /etc/o.toml:2
        closed_retention                                 = "30s"         # default
        "#);
        assert_eq!(lines.len(), SETTINGS.len());
        let text = |origins, screen| table(&five(), origins, screen).concat();
        assert!(!text(true, Screen::FILE).contains('\x1b'));
        assert!(text(true, Screen::COLOURED).contains('\x1b'));
        assert!(!text(false, Screen::FILE).contains('#'));
    }

    #[test]
    fn secrets_take_effect_and_are_never_shown() {
        let user = Source::User {
            file: "o.toml".to_owned(),
        };
        let layers = |secret| {
            let text = format!("shell_environment_policy.set = {{ A = {secret:?} }}");
            Layers::new(vec![layer_of(user.clone(), &text)])
        };
        let secret = layers("hush");
        let config = secret.config().unwrap();
        assert_eq!(config.shell_environment_policy.set.0["A"], "hush");
        let result = read_result(&secret);
        let everything = format!(
            "{config:?}{}{}",
            serde_json::to_string(&result).unwrap(),
            table(&secret, true, Screen::COLOURED).concat()
        );
        assert!(!everything.contains("hush"), "{everything}");
        assert!(everything.contains("********"));
        // Comparing versions doesn't reveal it either.
        assert_eq!(result, read_result(&layers("other")));
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
}
