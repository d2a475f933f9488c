//! Log lines on stderr.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    fmt::Debug,
    fs::{File, Metadata},
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    panic::{self, PanicHookInfo},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    stdio::stderr,
};
use serde::{Deserialize, Serialize};
use tracing::field::Field;
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt as _,
    fmt::{self, format::Writer},
};

use crate::{
    log_queue::LogQueue,
    render::{
        screen::is_coloured,
        visible::{visible, visible_json},
    },
};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Size at which the log is rotated. One old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Log lines that wait for stderr. Lines beyond it are dropped.
const QUEUE_BYTES: usize = 1024 * 1024;
/// How long the last lines may take at the end of the program.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(400);

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

/// The log. Dropping it flushes the last lines, for a bounded time.
#[derive(Debug)]
pub(crate) struct Log(Arc<LogQueue>);

impl Log {
    /// Writes lines in any form and at any log level.
    pub(crate) fn lines(&self, lines: &str) {
        self.0.push(lines.as_bytes());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush(FLUSH_TIMEOUT);
    }
}

/// Starts logging to stderr. If `bounded` and stderr is a file, the file is rotated. A stderr that is
/// not read costs log lines, but never blocks the program.
pub(crate) fn start(level: &str, format: LogFormat, bounded: bool) -> anyhow::Result<Log> {
    let filter = filter(level).with_context(|| format!("cannot parse log level {level}"))?;
    let mut file = bounded.then(LogFile::of_stderr).flatten();
    let write = move |lines: &[u8]| match &mut file {
        Some(file) => file.write(lines),
        // A failure, such as a full disk, costs the lines.
        None => drop(write_stderr(lines)),
    };
    let queue = LogQueue::start(QUEUE_BYTES, write, report_dropped)
        .context("cannot start the logging thread")?;
    let builder = fmt::Subscriber::builder()
        .with_env_filter(filter)
        .log_internal_errors(false)
        .with_writer(Arc::clone(&queue));
    match format {
        LogFormat::Json => {
            let lines = JsonLines(Arc::clone(&queue));
            let builder = builder.json().with_writer(Arc::new(lines));
            tracing::subscriber::set_global_default(builder.finish())
        }
        LogFormat::Text => {
            let coloured = is_coloured(&io::stderr());
            let builder = builder.with_ansi(coloured).with_target(false);
            let fields = fmt::format::debug_fn(write_field).delimited(" ");
            tracing::subscriber::set_global_default(builder.fmt_fields(fields).finish())
        }
    }
    .context("cannot start logging")?;
    log_panics(Arc::clone(&queue));
    Ok(Log(queue))
}

/// The queue for lines of JSON, whose texts may be of others. Each write is one complete line.
struct JsonLines(Arc<LogQueue>);

impl Write for &JsonLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.push(visible_json(&text).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a field of a text line. Its value may be text of others.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let value = format!("{value:?}");
    let value = visible(&value);
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => write!(writer, "{name}={value}"),
    }
}

/// Reports dropped lines, at a level that every filter but `off` lets through.
fn report_dropped(lines: u64) {
    tracing::error!(lines, "log lines were dropped because stderr was not read");
}

/// Sends the messages of panics to the queue. The default hook writes to stderr itself and would
/// block.
fn log_panics(queue: Arc<LogQueue>) {
    panic::set_hook(Box::new(move |panic| {
        queue.push(panic_text(panic, &Backtrace::capture()).as_bytes());
    }));
}

fn panic_text(panic: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let mut text = format!("thread '{name}' {panic}\n");
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("stack backtrace:\n{backtrace}\n"));
    }
    text
}

/// Serializes the threads that write lines to stderr, so that lines are not mixed. A blocked write holds it,
/// so no other thread may take it, nor the lock of [`io::stderr`].
static STDERR_LINES: Mutex<()> = Mutex::new(());

/// Writes whole lines to stderr, beside those of the log.
pub(crate) struct StderrWriter;

impl Write for StderrWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        write_stderr(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to stderr. Returns the number of bytes if all or some were written.
fn write_stderr(bytes: &[u8]) -> io::Result<usize> {
    let _only = STDERR_LINES.lock();
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(stderr(), &bytes[written..]) {
            Ok(0) => break,
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            // Another process may have made a shared pipe or terminal non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], None);
            }
            Err(error) if written == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(written)
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

    fn write(&mut self, lines: &[u8]) {
        let _ = write_stderr(lines);
        self.written += lines.len() as u64;
        if self.written >= MAX_BYTES {
            // A failed rotation is retried after another MAX_BYTES.
            self.written = 0;
            let _ = self.rotate();
        }
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

fn stderr_metadata() -> io::Result<Metadata> {
    std::fs::metadata("/proc/self/fd/2")
}

/// The name of the rotated file: `server.log.old`.
fn rotated_name(path: &Path) -> PathBuf {
    path.with_added_extension("old")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn rotated_log_has_suffix_old() {
        let path = Path::new("/run/outpost/server.log");
        assert_eq!(rotated_name(path), Path::new("/run/outpost/server.log.old"));
    }

    fn recorded_queue() -> (Arc<LogQueue>, mpsc::Receiver<String>) {
        let (send, written) = mpsc::sync_channel(16);
        let write = move |lines: &[u8]| {
            let _ = send.send(String::from_utf8_lossy(lines).into_owned());
        };
        let queue = LogQueue::start(QUEUE_BYTES, write, |_| ()).expect("a thread");
        (queue, written)
    }

    #[test]
    fn json_has_no_hidden_characters() {
        let (queue, written) = recorded_queue();
        let builder = fmt::Subscriber::builder().json();
        let subscriber = builder.with_writer(Arc::new(JsonLines(queue))).finish();
        let text = "a\u{9b}31m\u{202e}b\u{1b}";
        tracing::subscriber::with_default(subscriber, || tracing::info!(text, "sent"));
        let line = written.recv_timeout(Duration::from_secs(20));
        let line = line.expect("a line");
        let hidden = ["\u{9b}", "\u{202e}", "\u{1b}"];
        assert!(!hidden.iter().any(|one| line.contains(one)), "{line:?}");
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["fields"]["text"], text);
    }

    #[test]
    fn panic_is_written_to_the_queue() {
        let (queue, written) = recorded_queue();
        log_panics(queue);
        let panicking = thread::Builder::new().name("worker".to_owned());
        let worker = panicking
            .spawn(|| panic!("no such thing"))
            .expect("a thread");
        assert!(worker.join().is_err());
        drop(panic::take_hook());
        let text = written
            .recv_timeout(Duration::from_secs(20))
            .expect("a message");
        assert!(text.starts_with("thread 'worker' panicked at "), "{text}");
        assert!(text.contains("\nno such thing\n"), "{text}");
    }
}
