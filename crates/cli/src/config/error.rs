//! What can be wrong with a configuration.

use std::{io, path::PathBuf};

use serde_json::Value;

use super::{Setting, spoken::Wrong};

/// How much of a value is repeated to whoever wrote it.
const MAX_WORDS: usize = 80;

/// Why there is no configuration, in one line that says where to look. The
/// line has all of it: the excerpt that a parser adds may hold a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {why}", file.display())]
    Read { file: PathBuf, why: Unreadable },
    #[error("{}:{line}: {}", file.display(), in_one_line(why.message()))]
    Syntax {
        file: PathBuf,
        line: usize,
        why: toml::de::Error,
    },
    #[error("{}:{line}: unknown key {key}{}", file.display(), suggestion(nearest.as_deref()))]
    UnknownKey {
        file: PathBuf,
        line: usize,
        key: Words,
        nearest: Option<String>,
    },
    #[error("{}:{line}: cannot use {key}: expected a table, as in [{key}]", file.display())]
    NotATable {
        file: PathBuf,
        line: usize,
        key: Words,
    },
    #[error("{}:{line}: cannot use {key} = {value}: {why}", file.display())]
    InFile {
        file: PathBuf,
        line: usize,
        key: &'static str,
        value: Words,
        why: Wrong,
    },
    #[error("unknown variable {name} in the environment; did you mean {nearest}?")]
    UnknownVariable { name: Words, nearest: String },
    #[error("cannot use {name}={value} of the environment: {why}")]
    InVariable {
        name: String,
        value: Words,
        why: Wrong,
    },
    #[error("cannot use {name} of the environment: it is not UTF-8 text")]
    VariableNotText { name: String },
    #[error("cannot use --{flag} {value}: {why}")]
    InFlag {
        flag: String,
        value: Words,
        why: Wrong,
    },
}

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It might have no end, or never begin.
    #[error("it is a pipe, a socket or a device")]
    NotAFile,
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
}

/// A few words of somebody else's, in one line of bounded length.
#[derive(Debug)]
pub(crate) struct Words(String);

impl Words {
    pub(crate) fn new(text: &str) -> Self {
        let mut words: String = text
            .chars()
            .take(MAX_WORDS)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if text.chars().nth(MAX_WORDS).is_some() {
            words.push('…');
        }
        Words(words)
    }

    /// A value for a setting, unless nobody may see it.
    pub(crate) fn of(setting: &Setting, value: &Value) -> Self {
        Words::new(&setting.masked(value).to_string())
    }

    /// The same, as somebody has written it.
    pub(crate) fn as_written(setting: &Setting, value: &Value, text: &str) -> Self {
        match setting.masked(value) {
            masked if masked == *value => Words::new(text),
            masked => Words::new(&masked.to_string()),
        }
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

fn in_one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
