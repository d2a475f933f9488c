//! Parses the table of a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value};

use super::{
    ConfigError, ConfigErrorKind, Endpoint, Environment, ServerConfig, ToolFilter, TransportConfig,
};
use crate::{Command, EnvSource, EnvVar};

/// Length limit of a quoted key or name.
const QUOTED_CHARS: usize = 60;

const STDIO_KEYS: [&str; 5] = ["command", "args", "env", "env_vars", "cwd"];
const HTTP_KEYS: [&str; 4] = [
    "url",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];
const COMMON_KEYS: [&str; 9] = [
    "environment",
    "experimental_environment",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "enabled",
    "required",
    "enabled_tools",
    "disabled_tools",
    "supports_parallel_tool_calls",
];

const STRING: &str = "a non-empty string";
const STRINGS: &str = "a list of strings";
const VARIABLES: &str = "a table of variable names and string values";
const HEADERS: &str = "a table of header names and string values";
const BOOLEAN: &str = "true or false";
const SECONDS: &str = "a number of seconds greater than 0";
const ENV_VARS: &str =
    "a list of variable names or { name = \"NAME\", source = \"local\" or \"remote\" }";

/// Upper bound of a timeout, so that adding it to an `Instant` can't overflow.
const MAX_SECONDS: f64 = 1e9;

impl ServerConfig {
    /// Parses the table `[mcp_servers.NAME]`.
    pub fn parse(name: &str, value: &Value) -> Result<Self, ConfigError> {
        let parsed = check_name(name).and_then(|()| server(value));
        parsed.map_err(|kind| ConfigError {
            server: quoted(name),
            kind,
        })
    }
}

fn check_name(name: &str) -> Result<(), ConfigErrorKind> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_valid) {
        Ok(())
    } else {
        Err(ConfigErrorKind::Name)
    }
}

fn server(value: &Value) -> Result<ServerConfig, ConfigErrorKind> {
    let table = Table(value.as_object().ok_or(ConfigErrorKind::NotATable)?);
    let known = |key: &&String| {
        let mut all = STDIO_KEYS.iter().chain(&HTTP_KEYS).chain(&COMMON_KEYS);
        all.any(|known| known == *key)
    };
    if let Some(key) = table.0.keys().find(|key| !known(key)) {
        return Err(ConfigErrorKind::UnknownKey { key: quoted(key) });
    }
    let environment = environment(table)?;
    let transport = match (table.0.get("command"), table.0.get("url")) {
        (None, None) => return Err(ConfigErrorKind::NoTransport),
        (Some(_), Some(_)) => return Err(ConfigErrorKind::BothTransports),
        (Some(_), None) => {
            table.reject(&HTTP_KEYS, "command")?;
            TransportConfig::Stdio(command(table, environment)?)
        }
        (None, Some(_)) => {
            table.reject(&STDIO_KEYS, "url")?;
            TransportConfig::Http(endpoint(table)?)
        }
    };
    Ok(ServerConfig {
        transport,
        environment,
        startup_timeout: table.seconds("startup_timeout_sec")?,
        tool_timeout: table.seconds("tool_timeout_sec")?,
        enabled: table.boolean("enabled")?.unwrap_or(true),
        required: table.boolean("required")?.unwrap_or(false),
        tools: ToolFilter {
            enabled: table.string_set("enabled_tools")?,
            disabled: table.string_set("disabled_tools")?.unwrap_or_default(),
        },
        parallel: table
            .boolean("supports_parallel_tool_calls")?
            .unwrap_or(false),
    })
}

fn environment(table: Table<'_>) -> Result<Environment, ConfigErrorKind> {
    let keys = ["environment", "experimental_environment"];
    let [current, experimental] = keys.map(|key| table.0.get(key).map(|value| (key, value)));
    if current.is_some() && experimental.is_some() {
        return Err(ConfigErrorKind::BothEnvironments);
    }
    let Some((key, value)) = current.or(experimental) else {
        return Ok(Environment::default());
    };
    match value.as_str() {
        Some("local") => Ok(Environment::Local),
        Some("remote") => Ok(Environment::Remote),
        Some(name) => Err(ConfigErrorKind::Environment {
            key,
            name: format!("{:?}", quoted(name)),
        }),
        None => Err(ConfigErrorKind::Expected {
            key,
            expected: "\"local\" or \"remote\"",
        }),
    }
}

fn command(table: Table<'_>, environment: Environment) -> Result<Command, ConfigErrorKind> {
    let env_vars = match table.0.get("env_vars") {
        None => Vec::new(),
        Some(value) => {
            let items = value.as_array().ok_or(invalid_env_vars())?;
            items.iter().map(env_var).collect::<Result<Vec<_>, _>>()?
        }
    };
    let from_executor = |var: &&EnvVar| var.source == EnvSource::Remote;
    if let (Environment::Local, Some(var)) = (environment, env_vars.iter().find(from_executor)) {
        let name = quoted(&var.name);
        return Err(ConfigErrorKind::NoExecutor { name });
    }
    let env = table.string_table("env", VARIABLES, is_variable)?;
    Ok(Command {
        program: table.string("command")?.unwrap_or_default().into(),
        args: table
            .string_list("args")?
            .unwrap_or_default()
            .into_iter()
            .map(OsString::from)
            .collect(),
        env: env
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect(),
        env_vars,
        cwd: table.string("cwd")?.map(PathBuf::from),
    })
}

fn invalid_env_vars() -> ConfigErrorKind {
    ConfigErrorKind::Expected {
        key: "env_vars",
        expected: ENV_VARS,
    }
}

fn env_var(value: &Value) -> Result<EnvVar, ConfigErrorKind> {
    let (name, source) = match value {
        Value::String(name) => (name.as_str(), EnvSource::Local),
        Value::Object(members) => {
            if members.keys().any(|key| key != "name" && key != "source") {
                return Err(invalid_env_vars());
            }
            let name = members.get("name").and_then(Value::as_str);
            let source = match members.get("source").map(Value::as_str) {
                None | Some(Some("local")) => EnvSource::Local,
                Some(Some("remote")) => EnvSource::Remote,
                Some(_) => return Err(invalid_env_vars()),
            };
            (name.unwrap_or_default(), source)
        }
        _ => return Err(invalid_env_vars()),
    };
    // The executor takes names as patterns, and `*` would select every variable.
    let is_pattern = source == EnvSource::Remote && name.contains(['*', '?']);
    if !is_variable(name) || is_pattern {
        return Err(invalid_env_vars());
    }
    Ok(EnvVar {
        name: name.to_owned(),
        source,
    })
}

fn endpoint(table: Table<'_>) -> Result<Endpoint, ConfigErrorKind> {
    let url = table.string("url")?.unwrap_or_default();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(ConfigErrorKind::Expected {
            key: "url",
            expected: "an http:// or https:// URL",
        });
    }
    Ok(Endpoint {
        url,
        headers: table.string_table("http_headers", HEADERS, is_header)?,
        env_headers: table.string_table("env_http_headers", HEADERS, is_header)?,
        bearer_token_env_var: table.string("bearer_token_env_var")?,
    })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Checks for a token as defined in RFC 9110, section 5.6.2.
fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

#[derive(Clone, Copy)]
struct Table<'a>(&'a Map<String, Value>);

impl Table<'_> {
    /// Rejects keys that can't be combined with `other`.
    fn reject(self, keys: &[&'static str], other: &'static str) -> Result<(), ConfigErrorKind> {
        let found = keys.iter().find(|key| self.0.contains_key(**key));
        found.map_or(Ok(()), |key| Err(ConfigErrorKind::Conflict { key, other }))
    }

    fn get<T>(
        self,
        key: &'static str,
        expected: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ConfigErrorKind> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        let read = read(value).ok_or(ConfigErrorKind::Expected { key, expected })?;
        Ok(Some(read))
    }

    fn string(self, key: &'static str) -> Result<Option<String>, ConfigErrorKind> {
        self.get(key, STRING, |value| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        })
    }

    fn boolean(self, key: &'static str) -> Result<Option<bool>, ConfigErrorKind> {
        self.get(key, BOOLEAN, Value::as_bool)
    }

    fn seconds(self, key: &'static str) -> Result<Option<Duration>, ConfigErrorKind> {
        self.get(key, SECONDS, |value| {
            let seconds = value.as_f64()?;
            let in_range = seconds > 0.0 && seconds <= MAX_SECONDS;
            in_range.then(|| Duration::from_secs_f64(seconds))
        })
    }

    fn string_list(self, key: &'static str) -> Result<Option<Vec<String>>, ConfigErrorKind> {
        self.get(key, STRINGS, |value| {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    fn string_set(self, key: &'static str) -> Result<Option<BTreeSet<String>>, ConfigErrorKind> {
        let names = self.string_list(key)?;
        Ok(names.map(|names| names.into_iter().collect()))
    }

    fn string_table(
        self,
        key: &'static str,
        expected: &'static str,
        is_name: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, ConfigErrorKind> {
        let table = self.get(key, expected, |value| {
            let members = value.as_object()?.iter();
            members
                .map(|(name, value)| {
                    let value = value.as_str().filter(|_| is_name(name))?;
                    Some((name.clone(), value.to_owned()))
                })
                .collect::<Option<BTreeMap<_, _>>>()
        });
        Ok(table?.unwrap_or_default())
    }
}

/// Returns untrusted text on one line of bounded length.
fn quoted(text: &str) -> String {
    let mut quoted: String = text
        .chars()
        .take(QUOTED_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
