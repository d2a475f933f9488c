//! A server under test: Outpost or the peer.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use outpost_testkit::deadline::poll_for;
use rustix::process::{Pid, Signal, kill_process};

/// Time limit for accepting connections.
const START: Duration = Duration::from_secs(20);

/// Time limit for an orderly exit.
const END: Duration = Duration::from_secs(6);

/// How much of a server's output is read, for its URL or an error message.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Placeholder for a free port in the peer's command.
const PORT: &str = "{port}";

/// A server to start.
#[derive(Clone, Copy)]
pub(super) enum Candidate<'a> {
    Outpost(&'a Path),
    /// Outpost with further arguments.
    Configured(&'a Path, &'a [String]),
    /// A shell command.
    Peer(&'a str),
}

impl Candidate<'_> {
    pub(super) fn start(self) -> Result<Server> {
        match self {
            Self::Outpost(binary) => {
                // Default settings.
                Server::start(Command::new(binary).arg("serve"), None)
            }
            Self::Configured(binary, args) => {
                Server::start(Command::new(binary).arg("serve").args(args), None)
            }
            Self::Peer(line) => {
                // A port that was free a moment ago.
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let port = listener
                    .context("finding a free port")?
                    .local_addr()?
                    .port();
                // `exec`, so that the pid is the server's.
                let words = line.replace(PORT, &port.to_string());
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("exec {words}")]);
                Server::start(&mut shell, line.contains(PORT).then_some(port))
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
    fn start(command: &mut Command, port: Option<u16>) -> Result<Self> {
        // Files instead of pipes: no reader has to wake up during the measurement.
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()
            .context("starting the server")?;
        let mut server = Self {
            child,
            url: String::new(),
        };
        let child = &mut server.child;
        let reached = poll_for(START, || {
            let url = match port {
                Some(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                    .is_ok()
                    .then(|| format!("ws://127.0.0.1:{port}")),
                None => url_in(&text(&stdout)),
            };
            url.map(Ok).or_else(|| Some(Err(child.try_wait().ok()??)))
        });
        match reached {
            Some(Ok(url)) => server.url = url,
            Some(Err(status)) => bail!("the server exited with {status}: {}", text(&stderr)),
            None => bail!(
                "the server was not reachable in {START:?}: {}",
                text(&stderr)
            ),
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if poll_for(END, || self.child.try_wait().ok().flatten()).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Reads the output of a server, without moving the offset that it writes at.
fn text(output: &File) -> String {
    let mut bytes = vec![0; OUTPUT_BYTES];
    let read = output.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read])
        .trim_start()
        .to_owned()
}

/// Finds the URL in complete lines.
fn url_in(printed: &str) -> Option<String> {
    let (lines, _) = printed.rsplit_once('\n')?;
    let is_url = |word: &&str| word.starts_with("ws://") || word.starts_with("wss://");
    let url = lines.split_whitespace().find(is_url)?;
    Some(url.trim_end_matches('/').to_owned())
}
