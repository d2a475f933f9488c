//! A running server process.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::unix::pipe;

use crate::capture::Capture;
use crate::client::Client;
use crate::server_command::{CommandOutput, RunningCommand};
use crate::{ProcStats, TestTag, Transport, deadline};

/// How long an orderly shutdown may take. The documented bound is 5 s.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(7);

/// A server process. Dropping it ends it and checks that no process with its tag is left.
#[derive(Debug)]
pub struct Server {
    /// Without stdout for a stdio server.
    command: RunningCommand,
    transport: Transport,
    urls: Vec<String>,
    /// The pipes of a stdio server, until a client takes them.
    pipes: Mutex<Option<(pipe::Sender, pipe::Receiver)>>,
    tag: TestTag,
    dir: TempDir,
    /// Contains the link that the server was started by.
    _program_dir: TempDir,
    /// The test has waited for the exit and checks it itself.
    waited: bool,
}

impl Server {
    /// Waits until the server has printed its URLs.
    pub(crate) async fn started(
        mut child: Child,
        transport: Transport,
        sockets: usize,
        tag: TestTag,
        [dir, program_dir]: [TempDir; 2],
    ) -> Self {
        let mut pipes = None;
        // Otherwise stdin stays open and silent, which must not matter.
        if transport == Transport::Stdio {
            pipes = take_pipes(&mut child);
        }
        let mut server = Server {
            command: RunningCommand::new(child),
            transport,
            urls: Vec::new(),
            pipes: Mutex::new(pipes),
            tag,
            dir,
            _program_dir: program_dir,
            waited: false,
        };
        let RunningCommand { stdout, stderr, .. } = &server.command;
        let announced = stdout.as_ref().unwrap_or(stderr);
        let urls = announced.until(|text| urls_in(text, sockets)).await;
        server.urls =
            urls.unwrap_or_else(|| panic!("the server exited before it printed its URLs"));
        server
    }

    /// The URLs of its listeners, in the order of its arguments.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The address of its first `ws://` URL.
    pub fn address(&self) -> &str {
        self.urls[0]
            .strip_prefix("ws://")
            .unwrap_or_else(|| panic!("{} is not a ws:// URL", self.urls[0]))
    }

    /// The path of its `unix://` URL.
    pub fn socket_path(&self) -> &Path {
        let path = self.urls.iter().find_map(|url| url.strip_prefix("unix://"));
        Path::new(path.unwrap_or_else(|| panic!("no unix socket in {:?}", self.urls)))
    }

    /// The transport of the first listener.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The tag of its processes.
    pub fn tag(&self) -> &TestTag {
        &self.tag
    }

    /// A temporary directory that lives as long as the server.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.command.pid()
    }

    /// Resource usage from `/proc`.
    pub fn stats(&self) -> ProcStats {
        ProcStats::of(self.pid())
    }

    /// Its stdout so far.
    pub fn stdout(&self) -> String {
        let stdout = self.command.stdout.as_ref();
        stdout.map(Capture::text).unwrap_or_default()
    }

    /// Its stderr so far.
    pub fn stderr(&self) -> String {
        self.command.stderr.text()
    }

    /// Connects without a handshake. A stdio server has one connection only.
    pub async fn connect(&self) -> Client {
        if self.transport == Transport::Stdio {
            let pipes = self.pipes.lock().take();
            let (write, read) = pipes.unwrap_or_else(|| panic!("stdio has one client only"));
            return Client::over_lines(write, read, self.tag.clone());
        }
        self.connect_to(&self.urls[0]).await
    }

    /// Connects to one of its URLs, or to a link in front of it.
    pub async fn connect_to(&self, url: &str) -> Client {
        let connection = Client::over_websocket(url, self.tag.clone(), None);
        let client = deadline::expect_soon("a connection", connection).await;
        client.unwrap_or_else(|error| panic!("cannot connect to {url}: {error}"))
    }

    /// Connects with a bearer token and completes the handshake.
    pub async fn client_with_token(&self, token: &str) -> Client {
        let client = self.connect_with_token(token).await;
        client.handshake().await;
        client
    }

    /// Connects with a bearer token, without a handshake.
    pub async fn connect_with_token(&self, token: &str) -> Client {
        self.connect_to_with_token(&self.urls[0], token).await
    }

    /// Connects to one of its URLs, or to a link in front of it, with a bearer token.
    pub async fn connect_to_with_token(&self, url: &str, token: &str) -> Client {
        let connection = Client::with_token(url, self.tag.clone(), token);
        let client = deadline::expect_soon("a connection", connection).await;
        client.unwrap_or_else(|error| panic!("cannot connect to {url}: {error}"))
    }

    /// Connects and completes the handshake.
    pub async fn client(&self) -> Client {
        let client = self.connect().await;
        client.handshake().await;
        client
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.command.signal(signal);
    }

    /// Waits for its exit.
    pub async fn wait(&mut self) -> CommandOutput {
        let output = self.command.wait().await;
        self.waited = true;
        output
    }

    /// Sends SIGTERM, then SIGKILL. Returns an error if the shutdown was not orderly.
    fn end(&mut self) -> Result<(), String> {
        if self.waited {
            return Ok(());
        }
        self.signal(Signal::TERM);
        match deadline::poll_for(SHUTDOWN_WITHIN, || self.command.status()) {
            Some(status) if status.success() => Ok(()),
            // With stdin closed already, the signal counts as the second one.
            Some(status) if self.transport == Transport::Stdio && status.code() == Some(1) => {
                Ok(())
            }
            Some(status) => Err(format!(
                "the server exited with {:?}, by signal {:?}",
                status.code(),
                status.signal()
            )),
            None => {
                // Before the search for leftover processes, which would find the server itself.
                self.command.kill();
                Err(format!(
                    "the server did not exit within {SHUTDOWN_WITHIN:?}"
                ))
            }
        }
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "details of a failed test")]
    fn drop(&mut self) {
        let end = self.end();
        let left = self.tag.kill_remaining();
        let stderr = self.command.stderr.tail();
        if std::thread::panicking() {
            eprintln!("the server's stderr:\n{stderr}");
            eprintln!("its exit: {end:?}; still running: [{left}]");
            return;
        }
        if let Err(error) = end {
            panic!("{error}; its stderr:\n{stderr}");
        }
        assert!(left.is_empty(), "still running after the server: {left}");
    }
}

/// Returns the printed URLs once all are there, each on a complete line.
fn urls_in(text: &str, sockets: usize) -> Option<Vec<String>> {
    let urls: Vec<_> = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .filter(|line| {
            ["ws://", "wss://", "unix://"]
                .iter()
                .any(|scheme| line.starts_with(scheme))
        })
        .map(|line| line.trim_end().to_owned())
        .collect();
    (urls.len() >= sockets).then_some(urls)
}

fn take_pipes(child: &mut Child) -> Option<(pipe::Sender, pipe::Receiver)> {
    let write = OwnedFd::from(child.stdin.take()?);
    let read = OwnedFd::from(child.stdout.take()?);
    let write = pipe::Sender::from_owned_fd(write);
    let read = pipe::Receiver::from_owned_fd(read);
    write.ok().zip(read.ok())
}
