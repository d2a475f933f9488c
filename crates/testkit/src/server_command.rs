//! Starts the built binary.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::capture::Capture;
use crate::server::Server;
use crate::{TestTag, deadline};

/// Set by nextest to the path of the binary, which may differ from the path at compile time.
const BINARY_VARIABLE: &str = "NEXTEST_BIN_EXE_outpost";

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket over TCP, on a free port of loopback.
    WebSocket,
    /// WebSocket over a unix socket in a temporary directory.
    Unix,
    /// Lines on the server's standard input and output.
    Stdio,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 3] = [Transport::WebSocket, Transport::Unix, Transport::Stdio];
}

/// Builder for a server process or another command of the binary.
#[derive(Debug)]
pub struct ServerCommand {
    binary: PathBuf,
    transport: Transport,
    args: Vec<String>,
    more_listeners: usize,
    env: Vec<(OsString, OsString)>,
    clean: bool,
    /// Shell commands that run first, in the same process.
    prelude: Option<String>,
}

impl ServerCommand {
    /// A server with default settings, on a WebSocket. `built` is the path of the binary at compile
    /// time.
    pub fn new(built: &str) -> Self {
        ServerCommand {
            binary: env::var_os(BINARY_VARIABLE).map_or_else(|| built.into(), Into::into),
            transport: Transport::WebSocket,
            args: Vec::new(),
            more_listeners: 0,
            env: Vec::new(),
            clean: false,
            prelude: None,
        }
    }

    /// The path of the binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Sets the transport.
    pub fn on(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Adds a listener.
    pub fn listen(mut self, url: &str) -> Self {
        self.more_listeners += 1;
        self.args(&["--listen", url])
    }

    /// Adds arguments of `outpost serve`.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Clears the inherited environment.
    pub fn env_clear(mut self) -> Self {
        self.clean = true;
        self
    }

    /// Runs shell commands before the binary, in the same process.
    pub fn after_shell(mut self, prelude: &str) -> Self {
        self.prelude = Some(format!("{prelude}; exec \"$0\" \"$@\""));
        self
    }

    /// Starts a server and waits until it has printed its URLs.
    pub async fn start(self) -> Server {
        let dir = tempfile::tempdir()
            .unwrap_or_else(|error| panic!("cannot create a directory: {error}"));
        let listen = match self.transport {
            Transport::WebSocket => "ws://127.0.0.1:0".to_owned(),
            Transport::Unix => format!("unix://{}/socket", dir.path().display()),
            Transport::Stdio => "stdio://".to_owned(),
        };
        let mut args = vec!["serve".to_owned(), "--listen".to_owned(), listen];
        args.extend(self.args.iter().cloned());
        let tag = TestTag::new();
        let child = self.spawn(&args, &tag);
        let sockets = self.more_listeners + usize::from(self.transport != Transport::Stdio);
        Server::started(child, self.transport, sockets, tag, dir).await
    }

    /// Runs the binary with exactly these arguments and waits for its exit.
    pub async fn run(self, args: &[&str]) -> CommandOutput {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let tag = TestTag::new();
        let mut running = KillOnDrop {
            child: self.spawn(&args, &tag),
        };
        drop(running.child.stdin.take());
        let (stdout, stderr) = captures(&mut running.child);
        let code = deadline::poll_until("the exit of the program", || {
            running.child.try_wait().ok().flatten()
        })
        .await
        .code();
        CommandOutput {
            code,
            stdout: stdout.whole().await,
            stderr: stderr.whole().await,
        }
    }

    pub(crate) fn spawn(&self, args: &[String], tag: &TestTag) -> Child {
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
        // clap wraps `--help` at $COLUMNS.
        command.env_remove("COLUMNS");
        // Ignore the configuration of the user who runs the tests. A test that needs the user's file
        // sets this to an empty value.
        command.env("OUTPOST_CONFIG", "/dev/null");
        command
            .env(TestTag::VARIABLE, tag.as_str())
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.binary.display()))
    }
}

/// The result of a program that exited.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code, unless a signal ended the program.
    pub code: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

/// Kills the child on drop, also if the test panics.
struct KillOnDrop {
    child: Child,
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Captures stdout and stderr of a child.
pub(crate) fn captures(child: &mut Child) -> (Capture, Capture) {
    let stdout = child.stdout.take().map(Capture::start);
    let stderr = child.stderr.take().map(Capture::start);
    match (stdout, stderr) {
        (Some(stdout), Some(stderr)) => (stdout, stderr),
        _ => panic!("the child was started without pipes"),
    }
}
