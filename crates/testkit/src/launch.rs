//! How the built binary is to be started.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::capture::Capture;
use crate::server::Server;
use crate::{Mark, patience};

/// Where nextest says the binary is. It knows when the tests are run from somewhere else than
/// where they were built.
const BINARY_VARIABLE: &str = "NEXTEST_BIN_EXE_outpost";

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket over TCP, on a free port of loopback.
    WebSocket,
    /// WebSocket over a unix socket in a folder of its own.
    Unix,
    /// Lines on the server's standard input and output.
    Stdio,
}

impl Transport {
    /// Each of them.
    pub const ALL: [Transport; 3] = [Transport::WebSocket, Transport::Unix, Transport::Stdio];
}

/// A server that is not started yet.
#[derive(Debug)]
pub struct Launch {
    binary: PathBuf,
    transport: Transport,
    args: Vec<String>,
    more_listeners: usize,
    env: Vec<(OsString, OsString)>,
    clean: bool,
    /// Shell commands that come before it in the same process.
    prelude: Option<String>,
}

impl Launch {
    /// A server as it comes, on a WebSocket. `built` is where the binary was when the tests were
    /// compiled.
    pub fn of(built: &str) -> Self {
        Launch {
            binary: env::var_os(BINARY_VARIABLE).map_or_else(|| built.into(), Into::into),
            transport: Transport::WebSocket,
            args: Vec::new(),
            more_listeners: 0,
            env: Vec::new(),
            clean: false,
            prelude: None,
        }
    }

    /// Where the binary is, for who starts it in a way of its own.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Reached in another way.
    pub fn on(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Reached in one more way.
    pub fn listen(mut self, url: &str) -> Self {
        self.more_listeners += 1;
        self.args(&["--listen", url])
    }

    /// With these arguments of `outpost serve`.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// With this in its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// With nothing in its environment but what is given here.
    pub fn env_clear(mut self) -> Self {
        self.clean = true;
        self
    }

    /// As a shell starts it that has done this before.
    pub fn after(mut self, prelude: &str) -> Self {
        self.prelude = Some(format!("{prelude}; exec \"$0\" \"$@\""));
        self
    }

    /// Starts it, and waits until it says where it listens.
    pub async fn start(self) -> Server {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
        let listen = match self.transport {
            Transport::WebSocket => "ws://127.0.0.1:0".to_owned(),
            Transport::Unix => format!("unix://{}/socket", folder.path().display()),
            Transport::Stdio => "stdio://".to_owned(),
        };
        let mut args = vec!["serve".to_owned(), "--listen".to_owned(), listen];
        args.extend(self.args.iter().cloned());
        let mark = Mark::new();
        let child = self.spawn(&args, &mark);
        let sockets = self.more_listeners + usize::from(self.transport != Transport::Stdio);
        Server::take_over(child, self.transport, sockets, mark, folder).await
    }

    /// Runs it with exactly these arguments, to an end that it has to find by itself.
    pub async fn run(self, args: &[&str]) -> Ended {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mark = Mark::new();
        let mut running = Running {
            child: self.spawn(&args, &mark),
        };
        drop(running.child.stdin.take());
        let (stdout, stderr) = captures(&mut running.child);
        let code = patience::seen("the end of the program", || {
            running.child.try_wait().ok().flatten()
        })
        .await
        .code();
        Ended {
            code,
            stdout: stdout.whole().await,
            stderr: stderr.whole().await,
        }
    }

    pub(crate) fn spawn(&self, args: &[String], mark: &Mark) -> Child {
        let mut command = match &self.prelude {
            Some(prelude) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", prelude]).arg(&self.binary);
                shell
            }
            None => Command::new(&self.binary),
        };
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.clean {
            command.env_clear();
        }
        // It would decide where the lines of `--help` break.
        command.env_remove("COLUMNS");
        // Whoever runs the tests may have a configuration of their own; a test that wants the file
        // of its own user sets this to nothing.
        command.env("OUTPOST_CONFIG", "/dev/null");
        command
            .env(Mark::VARIABLE, mark.as_str())
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .spawn()
            .unwrap_or_else(|error| panic!("{} can't be started: {error}", self.binary.display()))
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code, unless a signal has ended it.
    pub code: Option<i32>,
    /// All it has printed.
    pub stdout: String,
    /// All it has complained about.
    pub stderr: String,
}

/// A program that must not outlive the test, whatever the test does.
struct Running {
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Captures what a child prints.
pub(crate) fn captures(child: &mut Child) -> (Capture, Capture) {
    let stdout = child.stdout.take().map(Capture::of);
    let stderr = child.stderr.take().map(Capture::of);
    match (stdout, stderr) {
        (Some(stdout), Some(stderr)) => (stdout, stderr),
        _ => panic!("the child was started without pipes"),
    }
}

/// The folder a server may use for itself.
pub(crate) type Folder = TempDir;
