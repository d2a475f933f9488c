//! Starts the user's server in the background.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
    time::timeout,
};

use super::directory::RuntimeDirectory;
use crate::endpoint::TOKEN_VARIABLE;

/// Timeout until the server listens.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Size of the log excerpt in a startup error.
const LOG_BYTES: u64 = 4 * 1024;
const LOG_LINES: usize = 10;

/// The name of the server in process lists.
const NAME: &str = "outpost";
/// The arguments before its URL.
const SUBCOMMAND: [&str; 2] = ["serve", "--listen"];
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

/// A server that doesn't start, and the end of its log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct LaunchFailure {
    message: String,
    /// The last lines of the log.
    pub(crate) log: Vec<String>,
}

/// Returns whether a command line, with a NUL after each argument, is that of a server on this URL.
pub(super) fn is_server(cmdline: &[u8], url: &str) -> bool {
    let beginning = [NAME, SUBCOMMAND[0], SUBCOMMAND[1], url];
    let mut args = cmdline.split(|byte| *byte == 0);
    beginning
        .iter()
        .all(|arg| args.next() == Some(arg.as_bytes()))
        && OPTIONS
            .last()
            .is_some_and(|last| args.any(|arg| arg == last.as_bytes()))
}

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
    let (remark, log) = log_excerpt(&directory.log());
    Err(anyhow::Error::new(LaunchFailure {
        message: format!("your server {failure}; {remark}"),
        log,
    }))
}

fn spawn(directory: &RuntimeDirectory) -> anyhow::Result<Child> {
    let log = directory.new_log()?;
    let mut command = Command::new(this_program());
    command
        .arg0(NAME)
        .args(SUBCOMMAND)
        .arg(directory.url()?)
        .args(OPTIONS)
        .current_dir(working_directory(std::env::var_os("HOME")))
        .env_remove(TOKEN_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    Ok(tokio::process::Command::from(command).spawn()?)
}

/// The server's working directory, where commands of `ssh://` start: the home directory, as after a login.
/// The root directory if there is none that can be entered.
fn working_directory(home: Option<OsString>) -> PathBuf {
    let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
    let can_enter = |home: &PathBuf| {
        home.is_dir() && rustix::fs::access(home, rustix::fs::Access::EXEC_OK).is_ok()
    };
    home.filter(can_enter).unwrap_or_else(|| "/".into())
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

/// The end of the log, with a remark for an error message.
fn log_excerpt(path: &Path) -> (String, Vec<String>) {
    let shown = path.display();
    match read_end(path) {
        Ok(end) if end.is_empty() => (format!("its log {shown} is empty"), end),
        Ok(end) => (format!("the end of its log {shown}:"), end),
        Err(error) => (
            format!("its log {shown} can't be read: {error}"),
            Vec::new(),
        ),
    }
}

/// The last lines of a file.
fn read_end(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
    let mut end = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let mut lines: Vec<_> = end.trim_end().lines().map(str::to_owned).collect();
    Ok(lines.split_off(lines.len().saturating_sub(LOG_LINES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_tells_the_server() {
        let line = |url: &str| {
            let args = [&[NAME, "serve", "--listen", url][..], &OPTIONS].concat();
            args.join("\0") + "\0"
        };
        let url = "unix:///run/outpost/server.sock";
        assert!(is_server(line(url).as_bytes(), url));
        assert!(!is_server(line("unix:///other").as_bytes(), url));
        assert!(!is_server(
            b"outpost\0serve\0--listen\0unix:///run/outpost/server.sock\0",
            url
        ));
        assert!(!is_server(b"", url));
    }

    #[test]
    fn server_runs_in_the_home_directory_if_it_can_be_entered() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_owned();
        assert_eq!(working_directory(Some(home.clone().into())), home);
        let root = PathBuf::from("/");
        assert_eq!(working_directory(None), root);
        assert_eq!(working_directory(Some("relative".into())), root);
        assert_eq!(working_directory(Some(home.join("absent").into())), root);
    }

    #[test]
    fn startup_error_shows_end_of_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert!(log_excerpt(&path).0.contains("can't be read"));
        std::fs::write(&path, "").unwrap();
        assert!(log_excerpt(&path).0.contains("is empty"));
        let lines: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        let (remark, log) = log_excerpt(&path);
        assert!(remark.contains("the end of its log"), "{remark}");
        assert_eq!(log.last().map(String::as_str), Some("line 4999"));
        assert_eq!(log.len(), LOG_LINES, "{log:?}");
    }
}
