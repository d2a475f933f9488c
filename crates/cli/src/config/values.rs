//! Value types of settings: how serde reads and writes them.

use std::{collections::BTreeMap, fmt};

use outpost_mcp::ServerConfig;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser};
use serde_json::{Map, Value};

use crate::{
    args::{
        server_or_launched,
        units::{Count, IdleTimeout, MaxTtl, Size, Span},
    },
    logging::LogLevel,
};

/// Replaces every secret scalar.
const MASK: &str = "********";

/// Deserializes `T`; a wrong type is reported as `expected …`, without the value.
pub(super) fn expect<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
) -> Result<T, D::Error> {
    T::deserialize(deserializer).map_err(|_| D::Error::custom(format_args!("expected {expected}")))
}

/// Implements serde for a type that is written as text or as a whole number.
macro_rules! text_or_number {
    ($type:ty, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = match Value::deserialize(deserializer)? {
                    Value::Number(number) => number.as_u64().map(|number| number.to_string()),
                    Value::String(text) => Some(text),
                    _ => None,
                };
                text.and_then(|text| text.parse().ok())
                    .ok_or_else(|| D::Error::custom(concat!("expected ", $expected)))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = self.to_string();
                match text.parse::<u64>() {
                    Ok(number) => serializer.serialize_u64(number),
                    Err(_) => serializer.serialize_str(&text),
                }
            }
        }
    };
}

text_or_number!(Size, "a size such as 65536, \"64KiB\" or \"1MiB\"");
text_or_number!(Span, "a time such as 30, \"30s\", \"500ms\" or \"1h30m\"");
text_or_number!(
    MaxTtl,
    "a time such as 30, \"30s\" or \"1h30m\", or \"unlimited\""
);
text_or_number!(
    IdleTimeout,
    "a time such as 30, \"30s\" or \"1h30m\", or \"never\""
);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        expect::<std::num::NonZeroUsize, D>(deserializer, "a whole number greater than 0")
            .map(|number| Count(number.get()))
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LogLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: String = expect(deserializer, "a level such as \"info\"")?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for LogLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

pub(super) fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    expect(deserializer, "true or false")
}

pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    expect(deserializer, "a name")
}

pub(super) fn strings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    expect(deserializer, "a list of strings")
}

/// Environment variables.
pub(super) fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Secret<BTreeMap<String, String>>, D::Error> {
    let variables: BTreeMap<String, String> = expect(
        deserializer,
        "a table of strings, such as { NAME = \"value\" }",
    )?;
    let is_invalid = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if variables.keys().any(is_invalid) {
        return Err(D::Error::custom(
            "expected variable names that aren't empty and contain no equals sign",
        ));
    }
    Ok(Secret(variables))
}

/// Serde for the addresses to listen on.
pub(super) mod listen_urls {
    use outpost_server::Listen;
    use serde::{Deserializer, Serializer, de::Error as _};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Listen>, D::Error> {
        const EXPECTED: &str = "a list with at least one URL, such as [\"ws://127.0.0.1:0\"]";
        let urls: Vec<String> = super::expect(deserializer, EXPECTED)?;
        if urls.is_empty() {
            return Err(D::Error::custom(format_args!("expected {EXPECTED}")));
        }
        let urls = urls.iter().map(|url| url.parse());
        urls.collect::<Result<_, _>>().map_err(D::Error::custom)
    }

    pub(crate) fn serialize<S: Serializer>(
        urls: &[Listen],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(urls.iter().map(ToString::to_string))
    }
}

/// Configured MCP servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct McpServers {
    pub(crate) servers: BTreeMap<String, ServerConfig>,
    /// The tables as written, for `config show`.
    tables: Map<String, Value>,
}

impl<'de> Deserialize<'de> for McpServers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tables: Map<String, Value> = expect(
            deserializer,
            "a table for each server, as in [mcp_servers.NAME]",
        )?;
        let servers = tables.iter().map(|(name, table)| {
            let config = ServerConfig::parse(name, table).map_err(D::Error::custom)?;
            Ok((name.clone(), config))
        });
        Ok(McpServers {
            servers: servers.collect::<Result<_, D::Error>>()?,
            tables,
        })
    }
}

impl Serialize for McpServers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.tables.serialize(serializer)
    }
}

/// Server on which remote MCP servers run. Written as an empty string if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteUrl(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for RemoteUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str =
            "a URL that begins with ws://, wss:// or unix:///, or stdio: and a command";
        let url: String = expect(deserializer, EXPECTED)?;
        if url.is_empty() {
            return Ok(RemoteUrl(None));
        }
        server_or_launched(&url)
            .map(|url| RemoteUrl(Some(url)))
            .map_err(|_| D::Error::custom(format_args!("expected {EXPECTED}")))
    }
}

impl Serialize for RemoteUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_deref().unwrap_or_default())
    }
}

/// A setting whose value is never shown: every scalar in it is serialized as a mask.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret<T>(pub(crate) T);

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(&self.0).map_err(ser::Error::custom)?;
        mask(&value).serialize(serializer)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Masks every scalar and keeps the names of tables.
pub(super) fn mask(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::Object(members) => {
            let masked = members
                .iter()
                .map(|(name, value)| (name.clone(), mask(value)));
            Value::Object(masked.collect())
        }
        _ => Value::from(MASK),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mask_hides_every_scalar_and_keeps_names() {
        assert_eq!(
            mask(&json!({"A": "secret", "B": ["x", 1, true], "C": null})),
            json!({"A": MASK, "B": [MASK, MASK, MASK], "C": null})
        );
        let secret = Secret(BTreeMap::from([("A", "secret")]));
        assert_eq!(serde_json::to_value(&secret).unwrap(), json!({"A": MASK}));
        assert_eq!(format!("{secret:?}"), MASK);
    }
}
