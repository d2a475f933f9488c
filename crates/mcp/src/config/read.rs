//! From what stands in a file to a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value};

use super::{ConfigError, Endpoint, Environment, Mistake, Reach, ServerConfig, ToolChoice};
use crate::{Command, EnvSource, EnvVar};

/// How much of somebody's words is repeated.
const SHOWN: usize = 60;

const STDIO: [&str; 5] = ["command", "args", "env", "env_vars", "cwd"];
const HTTP: [&str; 4] = [
    "url",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];
const COMMON: [&str; 9] = [
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

const A_STRING: &str = "a string that isn't empty";
const STRINGS: &str = "a list of strings";
const VARIABLES: &str = "a table of strings, with names of variables for keys";
const HEADERS: &str = "a table of strings, with names of headers for keys";
const A_SWITCH: &str = "true or false";
const SECONDS: &str = "a number of seconds greater than 0";
const ENV_VARS: &str =
    "a list of names of variables, or of { name = \"NAME\", source = \"local\" or \"remote\" }";

/// Longer than anybody waits, and still a time that can be added to another.
const MAX_SECONDS: f64 = 1e9;

impl ServerConfig {
    /// What the table of a server says.
    pub fn read(name: &str, value: &Value) -> Result<Self, ConfigError> {
        let checked = check_name(name).and_then(|()| server(value));
        checked.map_err(|mistake| ConfigError {
            server: shown(name),
            mistake,
        })
    }
}

fn check_name(name: &str) -> Result<(), Mistake> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(fine) {
        true => Ok(()),
        false => Err(Mistake::Name),
    }
}

fn server(value: &Value) -> Result<ServerConfig, Mistake> {
    let table = Table(value.as_object().ok_or(Mistake::NotATable)?);
    let known = |key: &&String| {
        let mut all = STDIO.iter().chain(&HTTP).chain(&COMMON);
        all.any(|known| known == *key)
    };
    if let Some(key) = table.0.keys().find(|key| !known(key)) {
        return Err(Mistake::UnknownKey { key: shown(key) });
    }
    let environment = environment(table)?;
    let reach = match (table.0.get("command"), table.0.get("url")) {
        (None, None) => return Err(Mistake::NoReach),
        (Some(_), Some(_)) => return Err(Mistake::BothReaches),
        (Some(_), None) => {
            table.without(&HTTP, "command")?;
            Reach::Stdio(command(table, environment)?)
        }
        (None, Some(_)) => {
            table.without(&STDIO, "url")?;
            Reach::Http(endpoint(table)?)
        }
    };
    Ok(ServerConfig {
        reach,
        environment,
        startup_timeout: table.seconds("startup_timeout_sec")?,
        tool_timeout: table.seconds("tool_timeout_sec")?,
        enabled: table.switch("enabled")?.unwrap_or(true),
        required: table.switch("required")?.unwrap_or(false),
        tools: ToolChoice {
            enabled: table.names("enabled_tools")?,
            disabled: table.names("disabled_tools")?.unwrap_or_default(),
        },
        parallel: table
            .switch("supports_parallel_tool_calls")?
            .unwrap_or(false),
    })
}

fn environment(table: Table<'_>) -> Result<Environment, Mistake> {
    let keys = ["environment", "experimental_environment"];
    let [usual, early] = keys.map(|key| table.0.get(key).map(|value| (key, value)));
    if usual.is_some() && early.is_some() {
        return Err(Mistake::BothEnvironments);
    }
    let Some((key, value)) = usual.or(early) else {
        return Ok(Environment::default());
    };
    match value.as_str() {
        Some("local") => Ok(Environment::Local),
        Some("remote") => Ok(Environment::Remote),
        Some(name) => Err(Mistake::Environment {
            key,
            name: format!("{:?}", shown(name)),
        }),
        None => Err(Mistake::Expected {
            key,
            expected: "\"local\" or \"remote\"",
        }),
    }
}

fn command(table: Table<'_>, environment: Environment) -> Result<Command, Mistake> {
    let env_vars = match table.0.get("env_vars") {
        None => Vec::new(),
        Some(value) => {
            let items = value.as_array().ok_or(env_vars_mistake())?;
            let read: Result<Vec<_>, _> = items.iter().map(env_var).collect();
            read?
        }
    };
    let from_executor = |var: &&EnvVar| var.source == EnvSource::Remote;
    if let (Environment::Local, Some(var)) = (environment, env_vars.iter().find(from_executor)) {
        let name = shown(&var.name);
        return Err(Mistake::NoExecutor { name });
    }
    let env = table.texts("env", VARIABLES, is_variable)?;
    Ok(Command {
        program: table.text("command")?.unwrap_or_default().into(),
        args: table
            .strings("args")?
            .unwrap_or_default()
            .into_iter()
            .map(OsString::from)
            .collect(),
        env: env
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect(),
        env_vars,
        cwd: table.text("cwd")?.map(PathBuf::from),
    })
}

fn env_vars_mistake() -> Mistake {
    Mistake::Expected {
        key: "env_vars",
        expected: ENV_VARS,
    }
}

fn env_var(value: &Value) -> Result<EnvVar, Mistake> {
    let (name, source) = match value {
        Value::String(name) => (name.as_str(), EnvSource::Local),
        Value::Object(members) => {
            if members.keys().any(|key| key != "name" && key != "source") {
                return Err(env_vars_mistake());
            }
            let name = members.get("name").and_then(Value::as_str);
            let source = match members.get("source").map(Value::as_str) {
                None | Some(Some("local")) => EnvSource::Local,
                Some(Some("remote")) => EnvSource::Remote,
                Some(_) => return Err(env_vars_mistake()),
            };
            (name.unwrap_or_default(), source)
        }
        _ => return Err(env_vars_mistake()),
    };
    // On the executor names are patterns, and a star would take everything.
    let pattern = source == EnvSource::Remote && name.contains(['*', '?']);
    match is_variable(name) && !pattern {
        true => Ok(EnvVar {
            name: name.to_owned(),
            source,
        }),
        false => Err(env_vars_mistake()),
    }
}

fn endpoint(table: Table<'_>) -> Result<Endpoint, Mistake> {
    let url = table.text("url")?.unwrap_or_default();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Mistake::Expected {
            key: "url",
            expected: "a URL that begins with http:// or https://",
        });
    }
    Ok(Endpoint {
        url,
        headers: table.texts("http_headers", HEADERS, is_header)?,
        env_headers: table.texts("env_http_headers", HEADERS, is_header)?,
        bearer_token_env_var: table.text("bearer_token_env_var")?,
    })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// What HTTP calls a token.
fn is_header(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fine)
}

#[derive(Clone, Copy)]
struct Table<'a>(&'a Map<String, Value>);

impl Table<'_> {
    fn without(self, keys: &[&'static str], beside: &'static str) -> Result<(), Mistake> {
        let strange = keys.iter().find(|key| self.0.contains_key(**key));
        strange.map_or(Ok(()), |key| Err(Mistake::Beside { key, beside }))
    }

    fn get<T>(
        self,
        key: &'static str,
        expected: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        let read = read(value).ok_or(Mistake::Expected { key, expected })?;
        Ok(Some(read))
    }

    fn text(self, key: &'static str) -> Result<Option<String>, Mistake> {
        self.get(key, A_STRING, |value| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        })
    }

    fn switch(self, key: &'static str) -> Result<Option<bool>, Mistake> {
        self.get(key, A_SWITCH, Value::as_bool)
    }

    fn seconds(self, key: &'static str) -> Result<Option<Duration>, Mistake> {
        self.get(key, SECONDS, |value| {
            let seconds = value.as_f64()?;
            let fine = seconds > 0.0 && seconds <= MAX_SECONDS;
            fine.then(|| Duration::from_secs_f64(seconds))
        })
    }

    fn strings(self, key: &'static str) -> Result<Option<Vec<String>>, Mistake> {
        self.get(key, STRINGS, |value| {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    fn names(self, key: &'static str) -> Result<Option<BTreeSet<String>>, Mistake> {
        let names = self.strings(key)?;
        Ok(names.map(|names| names.into_iter().collect()))
    }

    fn texts(
        self,
        key: &'static str,
        expected: &'static str,
        is_name: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, Mistake> {
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

/// Somebody's words, in one line of bounded length.
fn shown(words: &str) -> String {
    let mut shown: String = words
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if words.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
