//! Log lines on stderr.

use std::{
    fs::{File, Metadata},
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, Serialize};
use tracing_subscriber::{
    EnvFilter,
    fmt::{self, writer::BoxMakeWriter},
};

use crate::render::screen::is_coloured;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Size at which the log is rotated. One old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Parses a log level, or a filter with levels per module.
pub(crate) fn filter(text: &str) -> anyhow::Result<EnvFilter> {
    // EnvFilter takes any word for a module name, so a misspelled level would silence the log.
    let is_word = text.chars().all(char::is_alphanumeric);
    ensure!(
        !is_word || LEVELS.iter().any(|known| text.eq_ignore_ascii_case(known)),
        "expected one of {}, or a filter such as outpost_server=debug",
        LEVELS.join(", ")
    );
    EnvFilter::try_new(text)
        .map_err(|error| anyhow!("expected a filter such as outpost_server=debug: {error}"))
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to stderr. If `bounded` and stderr is a file, the file is rotated.
pub(crate) fn start(level: &str, format: LogFormat, bounded: bool) -> anyhow::Result<()> {
    let filter = filter(level).with_context(|| format!("cannot parse log level {level}"))?;
    let file = bounded.then(LogFile::of_stderr).flatten();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Mutex::new(file)),
        None => BoxMakeWriter::new(io::stderr),
    };
    let builder = fmt::Subscriber::builder()
        .with_env_filter(filter)
        // Reporting a failed write to the same stderr would panic if the disk is full.
        .log_internal_errors(false)
        .with_writer(writer);
    match format {
        LogFormat::Json => tracing::subscriber::set_global_default(builder.json().finish()),
        LogFormat::Text => {
            let coloured = is_coloured(&io::stderr());
            tracing::subscriber::set_global_default(
                builder.with_ansi(coloured).with_target(false).finish(),
            )
        }
    }
    .context("cannot start logging")
}

/// Writes to stderr, and rotates the file behind it. Other writers to stderr follow to the new
/// file.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    written: u64,
}

impl LogFile {
    /// The file behind stderr, if it is one.
    fn of_stderr() -> Option<Self> {
        let metadata = stderr_metadata().ok()?;
        let path = std::fs::read_link("/proc/self/fd/2").ok()?;
        metadata.is_file().then_some(LogFile {
            path,
            written: metadata.len(),
        })
    }

    /// Renames the file and redirects stderr to a new one.
    fn rotate(&self) -> io::Result<()> {
        let (ours, named) = (stderr_metadata()?, std::fs::metadata(&self.path)?);
        // A newer server may own the name by now.
        if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
            return Ok(());
        }
        std::fs::rename(&self.path, rotated_name(&self.path))?;
        let new = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)?;
        rustix::stdio::dup2_stderr(&new)?;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = io::stderr().write(line)?;
        self.written += written as u64;
        if self.written >= MAX_BYTES {
            // A failed rotation is retried after another MAX_BYTES.
            self.written = 0;
            let _ = self.rotate();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stderr_metadata() -> io::Result<Metadata> {
    std::fs::metadata("/proc/self/fd/2")
}

/// The name of the rotated file: `server.log.old`.
fn rotated_name(path: &Path) -> PathBuf {
    path.with_added_extension("old")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_log_has_suffix_old() {
        let path = Path::new("/run/outpost/server.log");
        assert_eq!(rotated_name(path), Path::new("/run/outpost/server.log.old"));
    }
}
