//! Log lines on stderr.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt};

use crate::args::LogFormat;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Sends log lines of the given level to stderr from now on.
pub(crate) fn start(level: &str, format: LogFormat) -> anyhow::Result<()> {
    // A filter takes any word for the name of a module, and then says nothing
    // at all: a slip of the pen would silence the log.
    let is_word = level.chars().all(char::is_alphanumeric);
    anyhow::ensure!(
        !is_word || LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)),
        "cannot understand --log-level {level}: expected one of {}, or a filter such as outpost_server=debug",
        LEVELS.join(", ")
    );
    let filter = EnvFilter::try_new(level)
        .with_context(|| format!("cannot understand --log-level {level}"))?;
    let builder = fmt::Subscriber::builder()
        .with_env_filter(filter)
        // A line that can't be written is lost. Complaining about it, to the same stderr, would
        // panic where that is a full disk.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Json => tracing::subscriber::set_global_default(builder.json().finish()),
        LogFormat::Text => {
            let coloured =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            tracing::subscriber::set_global_default(
                builder.with_ansi(coloured).with_target(false).finish(),
            )
        }
    }
    .context("cannot start logging")
}
