//! Log lines on stderr.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt};

use crate::args::LogFormat;

/// Sends log lines of the given level to stderr from now on.
pub(crate) fn start(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level)
        .with_context(|| format!("cannot understand --log-level {level}"))?;
    let builder = fmt::Subscriber::builder()
        .with_env_filter(filter)
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
