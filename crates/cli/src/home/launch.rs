//! The server is started behind the back of the person who needs it.

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

use super::folder::Folder;

/// How long it may take until it listens.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// How much of the log is told when it doesn't.
const TOLD_BYTES: u64 = 4 * 1024;
const TOLD_LINES: usize = 10;

/// How the server of a user is set up. What it runs stays until somebody ends
/// it, and can be read for a while after that.
const OPTIONS: [&str; 13] = [
    // A session stays until its work is forgotten and has left nothing running.
    "--max-sessions",
    "65536",
    "--max-session-ttl",
    "unlimited",
    "--closed-retention",
    "1h",
    "--retain-bytes",
    "16MiB",
    "--exit-when-idle",
    "15m",
    "--log-level",
    "info",
    "--background",
];

/// Starts the server, and waits until it listens.
pub(super) async fn launch(folder: &Folder) -> anyhow::Result<()> {
    let mut child = spawn(folder).context("cannot start the server of this user")?;
    let stdout = child.stdout.take().context("the server has no stdout")?;
    let mut url = String::new();
    let mut lines = BufReader::new(stdout);
    match timeout(READY_WITHIN, lines.read_line(&mut url)).await {
        Ok(Ok(read)) if read > 0 => Ok(()),
        Ok(_) => {
            let status = child.wait().await;
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            bail!(
                "the server of this user ended at once, with {status}; {}",
                told(&folder.log())
            )
        }
        Err(_) => {
            // It is ours, and of no use.
            let _ = child.kill().await;
            bail!(
                "the server of this user didn't listen within {READY_WITHIN:?}; {}",
                told(&folder.log())
            )
        }
    }
}

fn spawn(folder: &Folder) -> anyhow::Result<Child> {
    let log = folder.new_log()?;
    let mut command = Command::new(this_program());
    command
        .arg0("outpost")
        .args(["serve", "--listen", &folder.url()?])
        .args(OPTIONS)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    Ok(tokio::process::Command::from(command).spawn()?)
}

/// The very program that is running: by its name, which is what process lists
/// show, or where another version has been put in its place, by what is open.
fn this_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    let same = |named: &PathBuf| {
        let files = (std::fs::metadata(named), std::fs::metadata(&running));
        matches!(files, (Ok(named), Ok(running))
            if (named.dev(), named.ino()) == (running.dev(), running.ino()))
    };
    std::env::current_exe().ok().filter(same).unwrap_or(running)
}

/// The end of a log, for whoever wonders what happened.
fn told(path: &Path) -> String {
    let shown = path.display();
    match end_of(path) {
        Ok(end) if end.trim().is_empty() => format!("its log {shown} is empty"),
        Ok(end) => format!("the end of its log {shown}:\n{}", end.trim_end()),
        Err(error) => format!("its log {shown} can't be read: {error}"),
    }
}

fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TOLD_BYTES)))?;
    let mut end = Vec::new();
    file.take(TOLD_BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let lines: Vec<_> = end.lines().collect();
    Ok(lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(told(&path).contains("can't be read"));
        std::fs::write(&path, "").unwrap();
        assert!(told(&path).contains("is empty"));
        let lines: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        let told = told(&path);
        assert!(told.ends_with("line 4998\nline 4999"), "{told}");
        assert_eq!(told.lines().count(), 1 + TOLD_LINES, "{told}");
    }
}
