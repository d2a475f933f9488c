//! A server under test: Outpost or the peer.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Time limit for accepting connections.
const START: Duration = Duration::from_secs(20);

/// Time limit for an orderly exit.
const END: Duration = Duration::from_secs(6);

/// The poll interval for state without events.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Log lines shown of a server that did not start.
const SHOWN_LINES: usize = 5;

/// Placeholder for a free port in the peer's command.
const PORT: &str = "{port}";

/// The servers to compare with the bare system.
pub(super) struct Candidates {
    /// The built binary.
    pub(super) outpost: PathBuf,
    /// The peer's shell command.
    pub(super) peer: Option<String>,
}

impl Candidates {
    pub(super) fn outpost(&self) -> Candidate<'_> {
        Candidate::Outpost(&self.outpost)
    }

    pub(super) fn peer(&self) -> Option<Candidate<'_>> {
        self.peer.as_deref().map(Candidate::Peer)
    }
}

/// A server to start.
#[derive(Clone, Copy)]
pub(super) enum Candidate<'a> {
    Outpost(&'a Path),
    Peer(&'a str),
}

impl Candidate<'_> {
    pub(super) fn start(self) -> Result<Server> {
        match self {
            Self::Outpost(binary) => {
                let mut command = Command::new(binary);
                // Default settings.
                command.arg("serve");
                Server::start(command, None)
            }
            Self::Peer(line) => {
                let port = free_port()?;
                let mut shell = Command::new("/bin/sh");
                // `exec`, so that the pid is the server's.
                let words = line.replace(PORT, &port.to_string());
                shell.args(["-c", &format!("exec {words}")]);
                Server::start(shell, line.contains(PORT).then_some(port))
            }
        }
    }
}

/// A running server. Dropping it ends it.
pub(super) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Waits until the server accepts connections, at `port` or at the URL it prints.
    fn start(mut command: Command, port: Option<u16>) -> Result<Self> {
        // A file instead of a pipe: no reader has to wake up during the measurement.
        let mut log = tempfile::tempfile()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?)
            .spawn()
            .context("starting the server")?;
        let mut server = Self {
            child,
            url: String::new(),
        };
        let lines = server.lines()?;
        let found = match port {
            Some(port) => server.wait_for_port(port),
            None => server.wait_for_url(&lines),
        };
        server.url = found.with_context(|| last_log_lines(&mut log))?;
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads stdout in a thread, so that the server never blocks on it.
    fn lines(&mut self) -> Result<Receiver<String>> {
        let stdout = self
            .child
            .stdout
            .take()
            .context("the server has no stdout")?;
        // Later lines are dropped; the URL comes early.
        let (lines, printed) = sync_channel(64);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = lines.try_send(line);
            }
        });
        Ok(printed)
    }

    fn wait_for_url(&mut self, lines: &Receiver<String>) -> Result<String> {
        let deadline = Instant::now() + START;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) => {
                    let url = line
                        .split_whitespace()
                        .find(|word| word.starts_with("ws://"));
                    if let Some(url) = url {
                        return Ok(url.trim_end_matches('/').to_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("the server printed no ws:// URL within {START:?}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!(
                        "the server exited without printing a ws:// URL: {}",
                        self.child.wait()?
                    )
                }
            }
        }
    }

    fn wait_for_port(&mut self, port: u16) -> Result<String> {
        let deadline = Instant::now() + START;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server exited before it listened on port {port}: {status}");
            }
            if Instant::now() > deadline {
                bail!("the server did not listen on port {port} in {START:?}");
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(format!("ws://127.0.0.1:{port}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + END;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Returns the last log lines of a server that did not start.
fn last_log_lines(log: &mut File) -> String {
    let mut text = Vec::new();
    if log
        .rewind()
        .and_then(|()| log.read_to_end(&mut text))
        .is_err()
    {
        text.clear();
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    format!("the server did not start; its log: {}", last.join(" | "))
}

/// Returns a port that was free a moment ago.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}
