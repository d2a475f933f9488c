//! Parses the table of a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    time::Duration,
};

use outpost_types::optional_member::object;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    ConfigError, ConfigErrorKind, Endpoint, Environment, ServerConfig, ToolFilter, TransportConfig,
};
use crate::{Command, EnvSource, ForwardedVariable, diagnostics::shortened};

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
            server: shortened(name.as_bytes(), QUOTED_CHARS),
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
        let key = shortened(key.as_bytes(), QUOTED_CHARS);
        return Err(ConfigErrorKind::UnknownKey { key });
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
    let seconds = |key| {
        let in_range = |seconds: &f64| *seconds > 0.0 && *seconds <= MAX_SECONDS;
        let seconds = table.get(key, SECONDS, in_range)?;
        Ok::<_, ConfigErrorKind>(seconds.map(Duration::from_secs_f64))
    };
    let boolean = |key| table.get(key, "true or false", |_: &bool| true);
    let names = |key| table.get(key, STRINGS, |_: &BTreeSet<String>| true);
    Ok(ServerConfig {
        transport,
        environment,
        startup_timeout: seconds("startup_timeout_sec")?,
        tool_timeout: seconds("tool_timeout_sec")?,
        enabled: boolean("enabled")?.unwrap_or(true),
        required: boolean("required")?.unwrap_or(false),
        tools: ToolFilter {
            enabled: names("enabled_tools")?,
            disabled: names("disabled_tools")?.unwrap_or_default(),
        },
        parallel: boolean("supports_parallel_tool_calls")?.unwrap_or(false),
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
            name: format!("{:?}", shortened(name.as_bytes(), QUOTED_CHARS)),
        }),
        None => Err(ConfigErrorKind::Expected {
            key,
            expected: "\"local\" or \"remote\"",
        }),
    }
}

/// An item of `env_vars`.
#[derive(Deserialize)]
#[serde(untagged)]
enum EnvVarItem {
    Name(String),
    Table(#[serde(deserialize_with = "object")] ForwardedVariable),
}

impl From<EnvVarItem> for ForwardedVariable {
    fn from(item: EnvVarItem) -> Self {
        match item {
            EnvVarItem::Name(name) => ForwardedVariable {
                name,
                source: EnvSource::Local,
            },
            EnvVarItem::Table(var) => var,
        }
    }
}

fn command(table: Table<'_>, environment: Environment) -> Result<Command, ConfigErrorKind> {
    let items = table.get("env_vars", ENV_VARS, |_: &Vec<EnvVarItem>| true)?;
    let env_vars: Vec<_> = items
        .into_iter()
        .flatten()
        .map(ForwardedVariable::from)
        .collect();
    for ForwardedVariable { name, source } in &env_vars {
        let from_executor = *source == EnvSource::Remote;
        // The executor takes names as patterns, and `*` would select every variable.
        if !is_variable(name) || (from_executor && name.contains(['*', '?'])) {
            return Err(ConfigErrorKind::Expected {
                key: "env_vars",
                expected: ENV_VARS,
            });
        }
        if from_executor && environment == Environment::Local {
            let name = shortened(name.as_bytes(), QUOTED_CHARS);
            return Err(ConfigErrorKind::NoExecutor { name });
        }
    }
    let args = table.get("args", STRINGS, |_: &Vec<String>| true)?;
    let env = table.string_table("env", VARIABLES, is_variable)?;
    Ok(Command {
        program: table.string("command")?.unwrap_or_default().into(),
        args: args.into_iter().flatten().map(OsString::from).collect(),
        env: env
            .into_iter()
            .map(|(n, value)| (n, value.into()))
            .collect(),
        env_vars,
        cwd: table.string("cwd")?.map(PathBuf::from),
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

fn is_header(name: &str) -> bool {
    http::HeaderName::from_bytes(name.as_bytes()).is_ok()
}

/// The table of one MCP server in the configuration.
#[derive(Clone, Copy)]
struct Table<'a>(&'a Map<String, Value>);

impl Table<'_> {
    /// Rejects keys that can't be combined with `other`.
    fn reject(self, keys: &[&'static str], other: &'static str) -> Result<(), ConfigErrorKind> {
        let found = keys.iter().find(|key| self.0.contains_key(**key));
        found.map_or(Ok(()), |key| Err(ConfigErrorKind::Conflict { key, other }))
    }

    /// Returns the value of a key, if it has the type and `is_valid`.
    fn get<T: DeserializeOwned>(
        self,
        key: &'static str,
        expected: &'static str,
        is_valid: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, ConfigErrorKind> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        let value = T::deserialize(value).ok().filter(is_valid);
        let value = value.ok_or(ConfigErrorKind::Expected { key, expected })?;
        Ok(Some(value))
    }

    fn string(self, key: &'static str) -> Result<Option<String>, ConfigErrorKind> {
        self.get(key, STRING, |text: &String| !text.is_empty())
    }

    fn string_table(
        self,
        key: &'static str,
        expected: &'static str,
        is_name: fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, ConfigErrorKind> {
        let has_names = |table: &BTreeMap<String, _>| table.keys().all(|name| is_name(name));
        Ok(self.get(key, expected, has_names)?.unwrap_or_default())
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
