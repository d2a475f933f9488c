//! Starts the user's server in the background.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
    time::timeout,
};

use super::directory::RuntimeDirectory;

/// Timeout until the server listens.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Size of the log excerpt in a startup error.
const LOG_BYTES: u64 = 4 * 1024;
const LOG_LINES: usize = 10;

/// Options of the user's server. Processes run until they are ended, and stay readable for a while.
const OPTIONS: [&str; 7] = [
    // A session stays until its processes have expired and no leftover process runs.
    "--max-sessions=65536",
    "--max-session-ttl=unlimited",
    "--closed-retention=1h",
    "--retain-bytes=16MiB",
    "--exit-when-idle=15m",
    "--log-level=info",
    "--background",
];

/// Starts the server, and waits until it listens.
pub(super) async fn launch(directory: &RuntimeDirectory) -> anyhow::Result<()> {
    let mut child = spawn(directory).context("cannot start your server")?;
    let stdout = child.stdout.take().context("the server has no stdout")?;
    let mut url = String::new();
    let mut lines = BufReader::new(stdout);
    let failure = match timeout(START_TIMEOUT, lines.read_line(&mut url)).await {
        Ok(Ok(read)) if read > 0 => return Ok(()),
        Ok(_) => {
            let status = child.wait().await;
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            format!("exited at once with {status}")
        }
        Err(_) => {
            // It is our child and not usable.
            let _ = child.kill().await;
            format!("didn't listen within {START_TIMEOUT:?}")
        }
    };
    bail!("your server {failure}; {}", log_excerpt(&directory.log()))
}

fn spawn(directory: &RuntimeDirectory) -> anyhow::Result<Child> {
    let log = directory.new_log()?;
    let mut command = Command::new(this_program());
    command
        .arg0("outpost")
        .args(["serve", "--listen", &directory.url()?])
        .args(OPTIONS)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    Ok(tokio::process::Command::from(command).spawn()?)
}

/// The running binary: by its path, which process lists show, or by /proc/self/exe if the file has
/// been replaced.
fn this_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    let same = |named: &PathBuf| {
        let files = (std::fs::metadata(named), std::fs::metadata(&running));
        matches!(files, (Ok(named), Ok(running))
            if (named.dev(), named.ino()) == (running.dev(), running.ino()))
    };
    std::env::current_exe().ok().filter(same).unwrap_or(running)
}

/// The end of the log, for an error message.
fn log_excerpt(path: &Path) -> String {
    let shown = path.display();
    match read_end(path) {
        Ok(end) if end.trim().is_empty() => format!("its log {shown} is empty"),
        Ok(end) => format!("the end of its log {shown}:\n{}", end.trim_end()),
        Err(error) => format!("its log {shown} can't be read: {error}"),
    }
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
    let mut end = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let lines: Vec<_> = end.lines().collect();
    Ok(lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_error_shows_end_of_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert!(log_excerpt(&path).contains("can't be read"));
        std::fs::write(&path, "").unwrap();
        assert!(log_excerpt(&path).contains("is empty"));
        let lines: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        let excerpt = log_excerpt(&path);
        assert!(excerpt.ends_with("line 4998\nline 4999"), "{excerpt}");
        assert_eq!(excerpt.lines().count(), 1 + LOG_LINES, "{excerpt}");
    }
}
