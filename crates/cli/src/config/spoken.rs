//! How values are written: in a file, in a variable, on the command line.

use std::{collections::BTreeMap, str::FromStr};

use outpost_engine::sandbox::policy::NotAPlace;
use outpost_server::{Listen, ParseListenError};
use serde_json::Value;

use super::file;
use crate::{
    args::units::{Count, Idleness, Lease, Size, Span},
    logging::{LogLevel, WrongLevel},
};

/// A type that a setting can have.
pub(crate) trait Spoken: Sized {
    /// Whether it has several values of the same kind.
    const IS_LIST: bool = false;

    /// What a variable's text stands for. It need not make sense:
    /// [`Spoken::from_value`] looks at it next.
    fn value_of_text(text: &str) -> Value {
        Value::from(text)
    }

    /// Reads what a file would have.
    fn from_value(value: &Value) -> Result<Self, Wrong>;

    /// What a file would have. Read again, it gives the same.
    fn to_value(&self) -> Value;

    /// The only words there are for it, if they can be counted.
    fn words() -> Vec<Word> {
        Vec::new()
    }
}

/// One of the words that a setting can have for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// Why a value is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    /// It isn't written in the way its kind is.
    #[error("expected {0}")]
    Expected(&'static str),
    /// It isn't one of a few words.
    #[error("expected one of {}", .0.join(", "))]
    OneOf(Vec<&'static str>),
    /// Nobody can listen there.
    #[error(transparent)]
    Listen(#[from] ParseListenError),
    /// A default that doesn't exist.
    #[error(
        "cannot use sandbox.default_profile = {0:?}: there is no such profile in sandbox.profiles"
    )]
    NoProfile(String),
    /// No entry of a profile can be about that.
    #[error(transparent)]
    Place(#[from] NotAPlace),
    /// Nothing can be logged like that.
    #[error(transparent)]
    Level(#[from] WrongLevel),
    /// An MCP server can't be used like that.
    #[error(transparent)]
    Mcp(#[from] Box<outpost_mcp::ConfigError>),
}

fn text<'a>(value: &'a Value, expected: &'static str) -> Result<&'a str, Wrong> {
    value.as_str().ok_or(Wrong::Expected(expected))
}

/// A time of any kind: a number is one of seconds.
fn span<T: FromStr>(value: &Value) -> Option<T> {
    match value.as_u64() {
        Some(seconds) => seconds.to_string().parse().ok(),
        None => value.as_str()?.parse().ok(),
    }
}

impl Spoken for Size {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a size such as 65536, \"64KiB\" or \"1MiB\"";
        if let Some(bytes) = value.as_u64() {
            let bytes = usize::try_from(bytes).map_err(|_| Wrong::Expected(EXPECTED))?;
            return Ok(Size(bytes));
        }
        let parsed = text(value, EXPECTED)?.parse();
        parsed.map_err(|_| Wrong::Expected(EXPECTED))
    }

    fn to_value(&self) -> Value {
        // A number without a unit is one.
        let text = self.to_string();
        text.parse::<u64>().map_or(Value::from(text), Value::from)
    }
}

impl Spoken for Span {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a time such as 30, \"30s\", \"500ms\" or \"1h30m\"";
        span(value).ok_or(Wrong::Expected(EXPECTED))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Spoken for Lease {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a time such as 30, \"30s\" or \"1h30m\", or \"unlimited\"";
        span(value).ok_or(Wrong::Expected(EXPECTED))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Spoken for Idleness {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a time such as 30, \"30s\" or \"1h30m\", or \"never\"";
        span(value).ok_or(Wrong::Expected(EXPECTED))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Spoken for Count {
    fn value_of_text(text: &str) -> Value {
        text.parse::<u64>().map_or(Value::from(text), Value::from)
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .filter(|number| *number > 0)
            .map(Count)
            .ok_or(Wrong::Expected("a whole number greater than 0"))
    }

    fn to_value(&self) -> Value {
        Value::from(self.0)
    }
}

impl Spoken for bool {
    fn value_of_text(text: &str) -> Value {
        text.parse::<bool>().map_or(Value::from(text), Value::from)
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        value.as_bool().ok_or(Wrong::Expected("true or false"))
    }

    fn to_value(&self) -> Value {
        Value::from(*self)
    }
}

impl Spoken for String {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        text(value, "a name").map(str::to_owned)
    }

    fn to_value(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl Spoken for LogLevel {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        Ok(text(value, "a level such as \"info\"")?.parse()?)
    }

    fn to_value(&self) -> Value {
        Value::from(self.as_str())
    }
}

/// Words in a variable: between commas, or like a list in a file.
fn list_of_text(text: &str) -> Value {
    match text.trim() {
        "" => Value::Array(Vec::new()),
        text if text.starts_with('[') => file::value(text).unwrap_or(Value::from(text)),
        text => text.split(',').map(str::trim).collect(),
    }
}

fn list(value: &Value, expected: &'static str) -> Result<Vec<String>, Wrong> {
    let items = value.as_array().ok_or(Wrong::Expected(expected))?;
    items
        .iter()
        .map(|item| text(item, expected).map(str::to_owned))
        .collect()
}

impl Spoken for Vec<String> {
    const IS_LIST: bool = true;

    fn value_of_text(text: &str) -> Value {
        list_of_text(text)
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        list(value, "a list of strings")
    }

    fn to_value(&self) -> Value {
        self.iter().map(String::as_str).collect()
    }
}

impl Spoken for Vec<Listen> {
    const IS_LIST: bool = true;

    fn value_of_text(text: &str) -> Value {
        list_of_text(text)
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a list with at least one URL, such as [\"ws://127.0.0.1:0\"]";
        let urls = list(value, EXPECTED)?;
        if urls.is_empty() {
            return Err(Wrong::Expected(EXPECTED));
        }
        urls.iter().map(|url| Ok(url.parse()?)).collect()
    }

    fn to_value(&self) -> Value {
        self.iter().map(ToString::to_string).collect()
    }
}

impl Spoken for BTreeMap<String, String> {
    fn value_of_text(text: &str) -> Value {
        match text.trim() {
            "" => Value::Object(serde_json::Map::new()),
            text if text.starts_with('{') => file::value(text).unwrap_or(Value::from(text)),
            text => text
                .split(',')
                .map(|pair| pair.split_once('='))
                .map(|pair| pair.map(|(name, value)| (name.trim().to_owned(), value.into())))
                .collect::<Option<serde_json::Map<_, _>>>()
                .map_or(Value::from(text), Value::Object),
        }
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a table of strings, such as { NAME = \"value\" }";
        const NAMED: &str =
            "names of variables, which aren't empty and have no equals sign in them";
        let table = value.as_object().ok_or(Wrong::Expected(EXPECTED))?;
        if table
            .keys()
            .any(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return Err(Wrong::Expected(NAMED));
        }
        table
            .iter()
            .map(|(name, value)| Ok((name.clone(), text(value, EXPECTED)?.to_owned())))
            .collect()
    }

    fn to_value(&self) -> Value {
        let pairs = self
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()));
        Value::Object(pairs.collect())
    }
}
