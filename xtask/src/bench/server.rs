//! A server under test: Outpost, or the peer.

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

/// How long a server may take until it accepts connections.
const START: Duration = Duration::from_secs(20);

/// How long a server may take to end when it is asked to.
const END: Duration = Duration::from_secs(6);

/// How often we look for what nothing tells us about.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How many lines of its log are shown of a server that didn't start.
const LAST_WORDS: usize = 5;

/// Stands for a free port in the peer's command.
const PORT: &str = "{port}";

/// Who is compared with the bare system.
pub(super) struct Candidates {
    /// The built binary.
    pub(super) outpost: PathBuf,
    /// The peer's command, as a person types it.
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

/// One of them; starts as many servers as a row needs.
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
                // As it comes: what has to be set first to be fast isn't fast.
                command.arg("serve");
                Server::start(command, None)
            }
            Self::Peer(line) => {
                let port = free_port()?;
                let mut shell = Command::new("/bin/sh");
                // The shell goes away, so that its process is the server itself.
                let words = line.replace(PORT, &port.to_string());
                shell.args(["-c", &format!("exec {words}")]);
                Server::start(shell, line.contains(PORT).then_some(port))
            }
        }
    }
}

/// A running server; dropping it ends it.
pub(super) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Waits until it accepts connections: at the port it was told, or at the URL it prints.
    fn start(mut command: Command, port: Option<u16>) -> Result<Self> {
        // A file and no pipe: nobody has to wake up for a log while something is measured.
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
            Some(port) => server.until_it_accepts(port),
            None => server.until_it_prints(&lines),
        };
        server.url = found.with_context(|| last_words(&mut log))?;
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it prints, as long as somebody wants to know; afterwards it is read all the same, as a
    /// server must not block on it.
    fn lines(&mut self) -> Result<Receiver<String>> {
        let stdout = self.child.stdout.take().context("it has no stdout")?;
        // A line that doesn't fit is of no interest: the URL comes early.
        let (lines, printed) = sync_channel(64);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = lines.try_send(line);
            }
        });
        Ok(printed)
    }

    fn until_it_prints(&mut self, lines: &Receiver<String>) -> Result<String> {
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
                Err(RecvTimeoutError::Timeout) => bail!("it printed no ws:// URL in {START:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!(
                        "it ended without printing a ws:// URL: {}",
                        self.child.wait()?
                    )
                }
            }
        }
    }

    fn until_it_accepts(&mut self, port: u16) -> Result<String> {
        let deadline = Instant::now() + START;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended before it listened on port {port}: {status}");
            }
            if Instant::now() > deadline {
                bail!("it didn't listen on port {port} in {START:?}");
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

/// The end of a log, which is where a server says why it didn't start.
fn last_words(log: &mut File) -> String {
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
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    format!("the server didn't start; it said: {}", last.join(" | "))
}

/// A port that was free a moment ago, which is as much as can be known.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}
