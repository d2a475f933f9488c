//! Values of settings: how serde reads and writes them, and the names of choices.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::builder::{PossibleValue, PossibleValuesParser};
use outpost_engine::{Inherit, TreeChoice, Ttl, sandbox::Level};
use outpost_mcp::ServerConfig;
use outpost_server::{Listen, TokenHash, WebSocketAuth};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser,
};
use serde_json::{Map, Value};

use crate::{
    args::server_or_launched,
    logging::{self, LogFormat},
    units::{format_size, format_time, parse_size, parse_time},
};

/// The name of standard error in place of a file.
pub(crate) const STDERR: &str = "stderr";

/// Replaces every secret scalar.
const MASK: &str = "********";

/// Deserializes `T`; a wrong type is reported as `expected …`, without the value.
pub(super) fn expect<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
) -> Result<T, D::Error> {
    T::deserialize(deserializer).map_err(|_| D::Error::custom(format_args!("expected {expected}")))
}

/// Serde for a type that is written as text or as a whole number, and its parser.
macro_rules! text_or_number {
    ($name:ident, $type:ty, $parse:expr, $format:expr, $expected:literal) => {
        pub(super) mod $name {
            use super::*;

            pub(crate) fn parse(text: &str) -> Result<$type, &'static str> {
                $parse(text).ok_or(concat!("expected ", $expected))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$type, D::Error> {
                let text = match Value::deserialize(deserializer)? {
                    Value::Number(number) if number.is_u64() => number.to_string(),
                    Value::String(text) => text,
                    _ => String::new(),
                };
                parse(&text).map_err(D::Error::custom)
            }

            pub(crate) fn serialize<S: Serializer>(
                value: &$type,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let text: String = $format(*value);
                match text.parse::<u64>() {
                    Ok(number) => serializer.serialize_u64(number),
                    Err(_) => serializer.serialize_str(&text),
                }
            }
        }
    };
}

text_or_number!(
    size,
    usize,
    parse_size,
    format_size,
    "a size such as 65536, \"64KiB\" or \"1MiB\""
);
text_or_number!(
    time,
    Duration,
    |text| parse_time(text).ok(),
    format_time,
    "a time such as 30, \"30s\", \"500ms\" or \"1h30m\""
);
text_or_number!(
    max_ttl,
    Ttl,
    |text| match text {
        "unlimited" => Some(Ttl::Unlimited),
        text => parse_time(text).ok().map(Ttl::For),
    },
    |ttl| match ttl {
        Ttl::For(time) => format_time(time),
        Ttl::Unlimited => "unlimited".to_owned(),
    },
    "a time such as 30, \"30s\" or \"1h30m\", or \"unlimited\""
);
text_or_number!(
    idle_timeout,
    Option<Duration>,
    |text| match text {
        "never" => Some(None),
        text => parse_time(text).ok().map(Some),
    },
    |timeout: Option<Duration>| timeout.map_or_else(|| "never".to_owned(), format_time),
    "a time such as 30, \"30s\" or \"1h30m\", or \"never\""
);

pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    expect(deserializer, "a whole number greater than 0").map(NonZeroUsize::get)
}

pub(super) fn log_level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let level: String = expect(deserializer, "a level such as \"info\"")?;
    logging::filter(&level).map_err(D::Error::custom)?;
    Ok(level)
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

/// A text, or an empty one for none.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    expect(deserializer, "a text")
}

/// A path, or an empty one for none. A relative one is below the working directory.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let path: PathBuf = expect(deserializer, "a path")?;
    if path.as_os_str().is_empty() {
        return Ok(path);
    }
    std::path::absolute(path).map_err(D::Error::custom)
}

/// A path as above, or `stderr`.
pub(super) fn path_or_stderr<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<PathBuf, D::Error> {
    let path: PathBuf = expect(deserializer, "a path, or stderr")?;
    if path.as_os_str().is_empty() || path.as_os_str() == STDERR {
        return Ok(path);
    }
    std::path::absolute(path).map_err(D::Error::custom)
}

/// An absolute path, or an empty one for none.
pub(super) fn absolute_path<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<PathBuf, D::Error> {
    let path: PathBuf = expect(deserializer, "an absolute path")?;
    if path.as_os_str().is_empty() || path.is_absolute() {
        return Ok(path);
    }
    Err(D::Error::custom("expected an absolute path"))
}

/// A hash of a token, or an empty text for none.
pub(super) fn token_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let hash: String = expect(deserializer, "the 64 hexadecimal digits of a SHA-256")?;
    if !hash.is_empty() {
        hash.parse::<TokenHash>().map_err(D::Error::custom)?;
    }
    Ok(hash)
}

/// Serde for the addresses to listen on.
pub(super) mod listen_urls {
    use super::*;

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

/// Checks the tables of MCP servers.
pub(super) fn mcp_servers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Secret<Map<String, Value>>, D::Error> {
    const EXPECTED: &str = "a table for each server, as in [mcp_servers.NAME]";
    let tables: Map<String, Value> = expect(deserializer, EXPECTED)?;
    for (name, table) in &tables {
        ServerConfig::parse(name, table).map_err(D::Error::custom)?;
    }
    Ok(Secret(tables))
}

/// A URL or a host's name as for `--on`, or an empty string.
pub(super) fn remote_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    const EXPECTED: &str = "the name of a host, a URL that begins with ws://, wss://, unix:/// or ssh://, or stdio: and a command";
    let url: String = expect(deserializer, EXPECTED)?;
    if !url.is_empty() && server_or_launched(&url).is_err() {
        return Err(D::Error::custom(format_args!("expected {EXPECTED}")));
    }
    Ok(url)
}

/// A type with a fixed set of values.
pub(super) trait Choice: DeserializeOwned {
    /// The names of the values, and their descriptions in `--help`. A former name, which is still
    /// accepted, has none.
    const VALUES: &'static [(&'static str, &'static str)];
}

/// Parses the flag of a choice.
pub(super) fn choices<T: Choice>() -> PossibleValuesParser {
    let values = T::VALUES.iter().map(|(name, help)| {
        let value = PossibleValue::new(name).help(help);
        value.hide(help.is_empty())
    });
    PossibleValuesParser::new(values)
}

pub(super) fn choice<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let name = Value::deserialize(deserializer)?;
    let choice = Some(name).filter(Value::is_string).map(T::deserialize);
    choice.and_then(Result::ok).ok_or_else(|| {
        let described = T::VALUES.iter().filter(|(_, help)| !help.is_empty());
        let names: Vec<_> = described.map(|(name, _)| *name).collect();
        D::Error::custom(format_args!("expected one of {}", names.join(", ")))
    })
}

impl Choice for TreeChoice {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("auto", "A cgroup, else a subreaper, else a group"),
        ("cgroup", "A cgroup for each process"),
        (
            "subreaper",
            "A small process above each one, which inherits its orphans",
        ),
        ("keeper", ""),
        ("group", "Process groups; a daemon may escape them"),
    ];
}

impl Choice for Level {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        (
            "namespaces",
            "Namespaces, seccomp and Landlock; rejected where namespaces are missing",
        ),
        ("landlock", "Landlock and seccomp only: weaker isolation"),
    ];
}

impl Choice for WebSocketAuth {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("none", "No token, or a named one of --tokens-file"),
        ("capability-token", "One token for all clients"),
        (
            "signed-bearer-token",
            "A signed token (JWT) for each client",
        ),
    ];
}

impl Choice for LogFormat {
    const VALUES: &'static [(&'static str, &'static str)] =
        &[("text", "For people"), ("json", "One JSON object per line")];
}

impl Choice for Inherit {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("all", "The server's whole environment"),
        ("core", "The variables that nearly every program needs"),
        ("none", "Nothing"),
    ];
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

    #[test]
    fn deprecated_name_of_tree_kind_is_accepted() {
        for name in ["keeper", "subreaper"] {
            let choice = choice::<TreeChoice, _>(json!(name));
            assert_eq!(choice.unwrap(), TreeChoice::Subreaper);
        }
    }

    #[test]
    fn plain_number_is_a_time_in_seconds() {
        let time = Duration::from_secs(2);
        assert_eq!(max_ttl::parse("2"), Ok(Ttl::For(time)));
        assert_eq!(idle_timeout::parse("2"), Ok(Some(time)));
    }
}
