//! All sources, and which of them prevails.

use super::{InForce, Layer, Setting, Source, layer::Entry, spoken::Wrong};

/// What every source says, highest precedence first. The last one is what is
/// built in, and has something to say about every setting.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    table: &'static [Setting],
    layers: Vec<Layer>,
}

impl Layers {
    /// The layers over what is built in, highest precedence first.
    pub(crate) fn new(table: &'static [Setting], mut layers: Vec<Layer>) -> Self {
        layers.push(Layer::defaults(table));
        Layers { table, layers }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter()
    }

    /// For each setting, in the order of the table, what prevails.
    pub(crate) fn effective(&self) -> impl Iterator<Item = (&Layer, &Entry)> {
        self.table.iter().filter_map(|setting| {
            self.layers
                .iter()
                .find_map(|layer| layer.entry(setting).map(|entry| (layer, entry)))
        })
    }

    /// The outcome.
    pub(crate) fn in_force(&self) -> Result<InForce, Wrong> {
        let mut in_force = InForce::default();
        for (layer, entry) in self.effective() {
            if layer.source != Source::Default {
                entry.setting.field.apply(&mut in_force, &entry.value)?;
            }
        }
        let profiles = &in_force.settings.profiles;
        if profiles.has(&profiles.default) {
            Ok(in_force)
        } else {
            Err(Wrong::NoProfile(profiles.default.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outpost_engine::Ttl;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{SETTINGS, Show, environment, field::Member, file, reading::reading};
    use crate::logging::LogLevel;

    fn of_file(table: &'static [Setting], source: Source, text: &str) -> Layer {
        file::layer(table, source, Path::new("o.toml"), text).unwrap()
    }

    /// Five sources that disagree.
    fn five() -> Layers {
        let mut flags = Layer::new(Source::CommandLine);
        let listen = &SETTINGS[0];
        flags.say(listen, &json!(["stdio://"]), None).unwrap();
        let variables = [
            ("OUTPOST_LISTEN", "ws://127.0.0.1:1"),
            ("OUTPOST_MAX_SESSIONS", "2"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        Layers::new(
            SETTINGS,
            vec![
                flags,
                environment::layer(SETTINGS, variables).unwrap(),
                of_file(
                    SETTINGS,
                    Source::User("/u/o.toml".into()),
                    "max_sessions = 3\nretain_bytes = 3\nmax_session_ttl = \"unlimited\"",
                ),
                of_file(
                    SETTINGS,
                    Source::System("/etc/o.toml".into()),
                    "retain_bytes = 4\nwindow_bytes = 4\nlisten = [\"ws://127.0.0.1:4\"]",
                ),
            ],
        )
    }

    #[test]
    fn the_highest_that_says_something_prevails() {
        let in_force = five().in_force().unwrap();
        let built_in = InForce::default();
        assert_eq!(in_force.listen, [outpost_server::Listen::Stdio]);
        assert_eq!(in_force.limits.max_sessions, 2);
        assert_eq!(in_force.limits.retain_bytes, 3);
        assert_eq!(in_force.limits.window_bytes, 4);
        assert_eq!(in_force.settings.max_session_ttl, Ttl::Unlimited);
        assert_eq!(in_force.limits.max_processes, built_in.limits.max_processes);
    }

    #[test]
    fn what_is_told_has_its_origins_and_its_layers_in_order() {
        let told = reading(&five());
        assert_eq!(told.config["retain_bytes"], 3);
        assert_eq!(told.config["log"]["level"], "info");
        let origin = |key: &str| serde_json::to_value(&told.origins[key].name).unwrap();
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
        assert_eq!(told.origins.len(), SETTINGS.len());

        let layers = told.layers.unwrap();
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
        let user = &told.origins["retain_bytes"];
        assert_eq!(
            (&user.name, &user.version),
            (&layers[2].name, &layers[2].version)
        );
        assert_ne!(layers[2].version, layers[3].version);
    }

    #[test]
    fn people_see_it_aligned_with_where_to_change_it() {
        let show = Show {
            origins: true,
            coloured: false,
        };
        let table = show.table(&five());
        let first: Vec<_> = table.lines().take(4).collect();
        insta::assert_snapshot!(first.join("\n"), @r#"
        listen                                           = ["stdio://"]  # --listen
        retain_bytes                                     = 3             # /u/o.toml:2
        window_bytes                                     = 4             # /etc/o.toml:2
        closed_retention                                 = "30s"         # default
        "#);
        assert_eq!(table.lines().count(), SETTINGS.len());
        assert!(!table.contains('\x1b'));
        let coloured = Show {
            coloured: true,
            ..show
        };
        assert!(coloured.table(&five()).contains('\x1b'));
        assert!(!Show::default().table(&five()).contains('#'));
    }

    static WITH_A_SECRET: &[Setting] = &[Setting {
        key: "log.level",
        value_name: Some("LEVEL"),
        meaning: "A level that nobody may know",
        secret: true,
        field: &Member::<LogLevel> {
            get: |c| c.log_level.clone(),
            set: |c, level| c.log_level = level,
        },
    }];

    #[test]
    fn a_secret_is_in_force_and_shown_to_nobody() {
        let user = Source::User("o.toml".into());
        let layers = |text| {
            Layers::new(
                WITH_A_SECRET,
                vec![of_file(WITH_A_SECRET, user.clone(), text)],
            )
        };
        let secret = layers("log.level = \"hush=debug\"");
        assert_eq!(secret.in_force().unwrap().log_level.as_str(), "hush=debug");
        let told = reading(&secret);
        let show = Show {
            origins: true,
            coloured: true,
        };
        let everything = format!(
            "{}{}",
            serde_json::to_string(&told).unwrap(),
            show.table(&secret)
        );
        assert!(!everything.contains("hush"), "{everything}");
        assert!(everything.contains("********"));
        // Nor can it be found by comparing versions.
        let other = reading(&layers("log.level = \"other=debug\""));
        assert_eq!(told, other);
    }

    #[test]
    fn what_is_built_in_can_be_written_down_and_read_again() {
        let lines = SETTINGS.iter().map(|setting| {
            assert_eq!(
                setting.field.read(&setting.default()).unwrap(),
                setting.default()
            );
            format!(
                "{} = {}\n",
                setting.key,
                crate::config::written(&setting.default())
            )
        });
        let text: String = lines.collect();
        let layer = of_file(SETTINGS, Source::Environment, &text);
        let values: Vec<_> = layer
            .entries
            .iter()
            .map(|entry| entry.value.clone())
            .collect();
        let built_in: Vec<_> = SETTINGS.iter().map(Setting::default).collect();
        assert_eq!(values, built_in);
    }

    #[test]
    fn every_setting_is_on_the_page_about_configuration() {
        let page = include_str!("../../../../docs/configuration.md");
        for setting in SETTINGS {
            let flag = match setting.flag() {
                Some(flag) => format!("`--{flag}`"),
                None => "none".to_owned(),
            };
            let row = format!(
                "| `{}` | `{}` | {flag} | `{}` | ",
                setting.key,
                setting.variable(),
                crate::config::written(&setting.default()),
            );
            assert!(page.contains(&row), "docs/configuration.md lacks {row:?}");
        }
        let rows = page.lines().filter(|line| line.contains("| `OUTPOST_"));
        assert_eq!(rows.count(), SETTINGS.len(), "and has one too many");
    }
}
