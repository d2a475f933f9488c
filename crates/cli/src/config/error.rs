//! Configuration errors.

use std::{io, path::PathBuf};

use serde_json::Value;

use super::{settings::Setting, values::mask};

/// Maximum number of characters of an excerpt.
const MAX_EXCERPT: usize = 80;

/// An invalid configuration. The message is one line that names the place to correct. It
/// leaves out the excerpt that the TOML parser adds, which may contain a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {why}", file.display())]
    Read { file: PathBuf, why: ReadError },
    #[error("{}:{line}: {}", file.display(), on_one_line(why.message()))]
    Syntax {
        file: PathBuf,
        line: usize,
        why: toml::de::Error,
    },
    #[error("{}:{line}: unknown key {key}{}", file.display(), suggestion(nearest.as_deref()))]
    UnknownKey {
        file: PathBuf,
        line: usize,
        key: Excerpt,
        nearest: Option<String>,
    },
    #[error("{}:{line}: cannot use {key}: expected a table, as in [{key}]", file.display())]
    NotATable {
        file: PathBuf,
        line: usize,
        key: Excerpt,
    },
    #[error("{}:{line}: cannot use {key} = {value}: {why}", file.display())]
    InFile {
        file: PathBuf,
        line: usize,
        key: &'static str,
        value: Excerpt,
        why: serde_json::Error,
    },
    #[error("unknown variable {name} in the environment; did you mean {nearest}?")]
    UnknownVariable { name: Excerpt, nearest: String },
    #[error("cannot use {name}={value} of the environment: {why}")]
    InVariable {
        name: String,
        value: Excerpt,
        why: serde_json::Error,
    },
    #[error("cannot use {name} of the environment: it is not UTF-8 text")]
    VariableNotText { name: String },
    #[error("cannot use --{flag} {value}: {why}")]
    InFlag {
        flag: String,
        value: Excerpt,
        why: serde_json::Error,
    },
    #[error(
        "cannot use sandbox.default_profile = {0:?}: there is no such profile in sandbox.profiles"
    )]
    NoProfile(String),
    /// Cannot happen: each layer was checked when it was read.
    #[error("cannot combine the configuration: {0}")]
    Combine(#[from] serde_json::Error),
}

/// A configuration file that can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Reading it might never begin or never end.
    #[error("it is a pipe, a socket or a device")]
    NotAFile,
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Text of the user's, on one line of bounded length.
#[derive(Debug)]
pub(crate) struct Excerpt(String);

impl Excerpt {
    pub(crate) fn new(text: &str) -> Self {
        let mut excerpt: String = text
            .chars()
            .take(MAX_EXCERPT)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if text.chars().nth(MAX_EXCERPT).is_some() {
            excerpt.push('…');
        }
        Excerpt(excerpt)
    }

    /// The value of a setting. The values in a table are masked, since they may be
    /// secrets.
    pub(crate) fn of_value(setting: &Setting, value: &Value) -> Self {
        if setting.default.is_object() {
            Excerpt::new(&mask(value).to_string())
        } else {
            Excerpt::new(&value.to_string())
        }
    }
}

impl std::fmt::Display for Excerpt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

fn on_one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
