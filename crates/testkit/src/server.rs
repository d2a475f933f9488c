//! A running server.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe;

use crate::capture::Capture;
use crate::client::Client;
use crate::launch::{Ended, Folder, captures};
use crate::{Mark, Transport, Vitals, patience};

/// How long an end may take that was asked for politely. The contract says 5 s.
const END_WITHIN: Duration = Duration::from_secs(7);

/// How long what the server has killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A server that was started by a test. Going out of scope ends it, and checks that nothing with
/// its mark is alive then.
#[derive(Debug)]
pub struct Server {
    child: Child,
    transport: Transport,
    urls: Vec<String>,
    /// The client's ends of the server's standard input and output, until there is a client.
    pipes: Mutex<Option<(pipe::Sender, pipe::Receiver)>>,
    /// Nothing where standard output carries messages.
    stdout: Option<Capture>,
    stderr: Capture,
    mark: Mark,
    folder: Folder,
    ended: Option<ExitStatus>,
}

impl Server {
    /// Waits until a server that was just started says where it listens.
    pub(crate) async fn take_over(
        mut child: Child,
        transport: Transport,
        sockets: usize,
        mark: Mark,
        folder: Folder,
    ) -> Self {
        let mut pipes = None;
        let mut stdout = None;
        let stderr;
        if transport == Transport::Stdio {
            pipes = take_pipes(&mut child);
            let err = child.stderr.take().unwrap_or_else(|| panic!("no stderr"));
            stderr = Capture::of(err);
        } else {
            // An open and silent standard input must not matter.
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
            mark,
            folder,
            ended: None,
        };
        let announced = server.stdout.as_ref().unwrap_or(&server.stderr);
        let urls = announced.until(|text| urls_in(text, sockets)).await;
        server.urls = urls.unwrap_or_else(|| panic!("the server ended before it said where it is"));
        server
    }

    /// Where it listens, one for each socket, in the order of its arguments.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The address behind a `ws://` URL of it.
    pub fn address(&self) -> &str {
        self.urls[0]
            .strip_prefix("ws://")
            .unwrap_or_else(|| panic!("{} is no TCP address", self.urls[0]))
    }

    /// The path behind its `unix://` URL.
    pub fn socket_path(&self) -> &Path {
        let path = self.urls.iter().find_map(|url| url.strip_prefix("unix://"));
        Path::new(path.unwrap_or_else(|| panic!("no unix socket in {:?}", self.urls)))
    }

    /// How it is reached.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What its processes are to carry.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// A folder that goes with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// How much of the machine it takes.
    pub fn vitals(&self) -> Vitals {
        Vitals::of(self.pid())
    }

    /// What it has printed on standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.as_ref().map(Capture::text).unwrap_or_default()
    }

    /// What it has printed on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// A new connection that has said nothing yet. On stdio there is only one.
    pub async fn connect(&self) -> Client {
        if self.transport == Transport::Stdio {
            let pipes = self.pipes.lock().ok().and_then(|mut pipes| pipes.take());
            let (write, read) = pipes.unwrap_or_else(|| panic!("stdio has one client only"));
            return Client::over_lines(write, read, self.mark.clone());
        }
        self.connect_to(&self.urls[0]).await
    }

    /// A new connection to one of its URLs, or to a link in front of it.
    pub async fn connect_to(&self, url: &str) -> Client {
        Client::over_websocket(url, self.mark.clone()).await
    }

    /// A new connection whose handshake is done.
    pub async fn client(&self) -> Client {
        let client = self.connect().await;
        client.shake_hands().await;
        client
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("the server can't be signalled: {error}"));
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Ended {
        let child = &mut self.child;
        let status = match self.ended {
            Some(status) => status,
            None => {
                patience::seen("the end of the server", || child.try_wait().ok().flatten()).await
            }
        };
        self.ended = Some(status);
        let stdout = match &self.stdout {
            Some(stdout) => stdout.whole().await,
            None => String::new(),
        };
        Ended {
            code: status.code(),
            stdout,
            stderr: self.stderr.whole().await,
        }
    }

    /// Asks it to end, and makes it if it doesn't; says what is wrong with that, if anything.
    fn end(&mut self) -> Result<(), String> {
        if self.ended.is_some() {
            return Ok(());
        }
        self.signal(Signal::TERM);
        let child = &mut self.child;
        let status = patience::seen_within(END_WITHIN, || child.try_wait().ok().flatten());
        self.ended = status;
        match status {
            Some(status) if status.success() => Ok(()),
            // The end of its input may have been the first word and the signal the second.
            Some(status) if self.transport == Transport::Stdio && status.code() == Some(1) => {
                Ok(())
            }
            Some(status) => Err(format!(
                "the server ended with {:?}, by signal {:?}",
                status.code(),
                status.signal()
            )),
            None => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                Err(format!("the server didn't end within {END_WITHIN:?}"))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let end = self.end();
        let mark = &self.mark;
        let gone = patience::seen_within(GONE_WITHIN, || mark.living().is_empty().then_some(()));
        let left = gone.map_or_else(|| mark.describe_living(), |()| String::new());
        mark.kill_living();
        if std::thread::panicking() {
            say(&format!("the server said:\n{}", self.stderr.tail()));
            say(&format!("its end: {end:?}; left alive: [{left}]"));
            return;
        }
        if let Err(error) = end {
            panic!("{error}; it said:\n{}", self.stderr.tail());
        }
        assert!(left.is_empty(), "left alive after the server: {left}");
    }
}

#[expect(clippy::print_stderr, reason = "a failed test says what it knows")]
fn say(words: &str) {
    eprintln!("{words}");
}

/// The announced URLs, once all of them are there.
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
