//! What `config/read` says.

use std::collections::BTreeMap;

use outpost_server::{ConfigLayer, ConfigOrigin, ConfigReadResult, ConfigSource};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Layers, Source,
    layer::{Entry, Layer},
};

/// What is in force, where it is from, and what each source says, without
/// secrets.
pub(crate) fn reading(layers: &Layers) -> ConfigReadResult {
    let origins = layers.effective().map(|(layer, entry)| {
        let origin = ConfigOrigin {
            name: name(&layer.source),
            version: version(&config(&layer.entries)),
        };
        (entry.setting.key.to_owned(), origin)
    });
    let each = layers.iter().map(|layer: &Layer| {
        let config = config(&layer.entries);
        ConfigLayer {
            name: name(&layer.source),
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

/// The settings in their tables.
fn config<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Map<String, Value> {
    let mut config = Map::new();
    for entry in entries {
        let value = entry.setting.masked(&entry.value);
        match entry.setting.key.split_once('.') {
            None => {
                config.insert(entry.setting.key.to_owned(), value);
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

/// A fingerprint of what a source says. Of what anybody may see of it: that of
/// a secret could be compared with guesses.
fn version(config: &Map<String, Value>) -> String {
    use std::fmt::Write as _;

    let text = Value::from(config.clone()).to_string();
    let mut version = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        let _ = write!(version, "{byte:02x}");
    }
    version
}

fn name(source: &Source) -> ConfigSource {
    match source {
        Source::CommandLine => ConfigSource::CommandLine,
        Source::Environment => ConfigSource::Environment,
        Source::User(file) => ConfigSource::User {
            file: file.display().to_string(),
        },
        Source::System(file) => ConfigSource::System {
            file: file.display().to_string(),
        },
        Source::Default => ConfigSource::Default,
    }
}
