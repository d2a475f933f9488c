//! A running server process.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::net::unix::pipe;

use crate::capture::Capture;
use crate::client::Client;
use crate::server_command::{CommandOutput, captures};
use crate::{ProcStats, TestTag, Transport, deadline};

/// How long an orderly shutdown may take. The documented bound is 5 s.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(7);

/// How long killed processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A server process. Dropping it ends it and checks that no process with its tag is left.
#[derive(Debug)]
pub struct Server {
    child: Child,
    transport: Transport,
    urls: Vec<String>,
    /// The pipes of a stdio server, until a client takes them.
    pipes: Mutex<Option<(pipe::Sender, pipe::Receiver)>>,
    /// None for a stdio server, whose stdout carries messages.
    stdout: Option<Capture>,
    stderr: Capture,
    tag: TestTag,
    dir: TempDir,
    ended: Option<ExitStatus>,
}

impl Server {
    /// Waits until the server has printed its URLs.
    pub(crate) async fn started(
        mut child: Child,
        transport: Transport,
        sockets: usize,
        tag: TestTag,
        dir: TempDir,
    ) -> Self {
        let mut pipes = None;
        let mut stdout = None;
        let stderr;
        if transport == Transport::Stdio {
            pipes = take_pipes(&mut child);
            let err = child.stderr.take().unwrap_or_else(|| panic!("no stderr"));
            stderr = Capture::start(err);
        } else {
            // An open and silent stdin must not matter.
            let (out, err) = captures(&mut child);
            stdout = Some(out);
            stderr = err;
        }
        let mut server = Server {
            child,
            transport,
            urls: Vec::new(),
            pipes: Mutex::new(pipes),
            stdout,
            stderr,
            tag,
            dir,
            ended: None,
        };
        let announced = server.stdout.as_ref().unwrap_or(&server.stderr);
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
        self.child.id() as i32
    }

    /// Resource usage from `/proc`.
    pub fn stats(&self) -> ProcStats {
        ProcStats::of(self.pid())
    }

    /// Its stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.as_ref().map(Capture::text).unwrap_or_default()
    }

    /// Its stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
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
        Client::over_websocket(url, self.tag.clone()).await
    }

    /// Connects and completes the handshake.
    pub async fn client(&self) -> Client {
        let client = self.connect().await;
        client.handshake().await;
        client
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("cannot signal the server: {error}"));
    }

    /// Waits for its exit.
    pub async fn wait(&mut self) -> CommandOutput {
        let child = &mut self.child;
        let status = match self.ended {
            Some(status) => status,
            None => {
                deadline::poll_until("the exit of the server", || child.try_wait().ok().flatten())
                    .await
            }
        };
        self.ended = Some(status);
        let stdout = match &self.stdout {
            Some(stdout) => stdout.whole().await,
            None => String::new(),
        };
        CommandOutput {
            code: status.code(),
            stdout,
            stderr: self.stderr.whole().await,
        }
    }

    /// Sends SIGTERM, then SIGKILL. Returns an error if the shutdown was not orderly.
    fn end(&mut self) -> Result<(), String> {
        if self.ended.is_some() {
            return Ok(());
        }
        self.signal(Signal::TERM);
        let child = &mut self.child;
        let status = deadline::poll_for(SHUTDOWN_WITHIN, || child.try_wait().ok().flatten());
        self.ended = status;
        match status {
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
                let _ = self.child.kill();
                let _ = self.child.wait();
                Err(format!(
                    "the server did not exit within {SHUTDOWN_WITHIN:?}"
                ))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let end = self.end();
        let tag = &self.tag;
        let gone = deadline::poll_for(GONE_WITHIN, || tag.living().is_empty().then_some(()));
        let left = gone.map_or_else(|| tag.describe_living(), |()| String::new());
        tag.kill_living();
        if std::thread::panicking() {
            report(&format!("the server's stderr:\n{}", self.stderr.tail()));
            report(&format!("its exit: {end:?}; still running: [{left}]"));
            return;
        }
        if let Err(error) = end {
            panic!("{error}; its stderr:\n{}", self.stderr.tail());
        }
        assert!(left.is_empty(), "still running after the server: {left}");
    }
}

#[expect(clippy::print_stderr, reason = "details of a failed test")]
fn report(text: &str) {
    eprintln!("{text}");
}

/// Returns the printed URLs once all are there.
fn urls_in(text: &str, sockets: usize) -> Option<Vec<String>> {
    let whole_lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let urls: Vec<_> = whole_lines
        .map(|line| line.trim_end().to_owned())
        .filter(|line| line.starts_with("ws://") || line.starts_with("unix://"))
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
