//! Output of `outpost config show` and `config/read`, with secrets masked.

use outpost_server::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource as Source};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::settings::{Entry, Layers, nest};
use crate::render::screen::{Screen, Style};

/// Columns up to which values are padded, so that their origins are aligned.
const MAX_ALIGNED_COLUMNS: usize = 48;

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
    // A long list of paths must not move the origins of all others out of sight.
    let value_width = values.filter(|width| *width <= MAX_ALIGNED_COLUMNS).max();
    let value_width = value_width.unwrap_or_default();
    let lines = rows.iter().map(|(entry, value, source)| {
        let mut line = format!("{:key_width$} = {value}", entry.setting.key);
        if origins {
            let pad = value_width.saturating_sub(value.chars().count());
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
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        config::{
            SETTINGS,
            settings::tests::{five, layer_of},
        },
        render::screen::Screen,
    };

    #[test]
    fn read_result_has_origins_and_layers_in_order() {
        let result = read_result(&five());
        assert_eq!(result.config["retain_bytes"], 3);
        // On stdio only.
        assert_eq!(result.config["log"]["level"], "warn");
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
        memory_budget                                    = "192MiB"      # default
        "#);
        assert_eq!(lines.len(), SETTINGS.len());
        let text = |origins, screen| table(&five(), origins, screen).concat();
        assert!(!text(true, Screen::FILE).contains('\x1b'));
        assert!(text(true, Screen::COLOURED).contains('\x1b'));
        assert!(!text(false, Screen::FILE).contains('#'));
    }

    #[test]
    fn long_value_does_not_widen_the_table() {
        let long = format!("retain_bytes = 3\nallowed_hosts = [{:?}]", "x".repeat(400));
        let layers = Layers::new(vec![layer_of(Source::Environment, &long)]);
        let lines = table(&layers, true, Screen::FILE);
        assert!(lines.len() > 1);
        let long: Vec<_> = lines.iter().filter(|line| line.len() > 120).collect();
        assert_eq!(long.len(), 1, "{long:?}");
        assert!(long[0].ends_with("]  # OUTPOST_ALLOWED_HOSTS"), "{long:?}");
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
}
