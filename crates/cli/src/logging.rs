//! Log lines on stderr.

use std::{str::FromStr, sync::Mutex};

use anyhow::Context;
use tracing_subscriber::{
    EnvFilter, filter,
    fmt::{self, writer::BoxMakeWriter},
};

use crate::{colour, log_file::LogFile};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A log level, or a filter with levels per module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(String);

/// An invalid log level.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogLevelError {
    #[error("expected one of {}, or a filter such as outpost_server=debug", LEVELS.join(", "))]
    Unknown,
    #[error("expected a filter such as outpost_server=debug: {0}")]
    Filter(#[from] filter::ParseError),
}

impl LogLevel {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        LogLevel("info".to_owned())
    }
}

impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(text: &str) -> Result<Self, LogLevelError> {
        // EnvFilter takes any word for a module name, so a misspelled level would
        // silence the log.
        let is_word = text.chars().all(char::is_alphanumeric);
        if is_word && !LEVELS.iter().any(|known| text.eq_ignore_ascii_case(known)) {
            return Err(LogLevelError::Unknown);
        }
        EnvFilter::try_new(text)?;
        Ok(LogLevel(text.to_owned()))
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to stderr. If `bounded` and stderr is a file, the file is rotated.
pub(crate) fn start(level: &LogLevel, format: LogFormat, bounded: bool) -> anyhow::Result<()> {
    let level = level.as_str();
    let filter =
        EnvFilter::try_new(level).with_context(|| format!("cannot parse log level {level}"))?;
    let file = bounded.then(LogFile::of_stderr).flatten();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Mutex::new(file)),
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let builder = fmt::Subscriber::builder()
        .with_env_filter(filter)
        // Reporting a failed write to the same stderr would panic if the disk is full.
        .log_internal_errors(false)
        .with_writer(writer);
    match format {
        LogFormat::Json => tracing::subscriber::set_global_default(builder.json().finish()),
        LogFormat::Text => {
            let coloured = colour::wanted(&std::io::stderr());
            tracing::subscriber::set_global_default(
                builder.with_ansi(coloured).with_target(false).finish(),
            )
        }
    }
    .context("cannot start logging")
}
