//! Starts the built binary: a server or another command.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};

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
        let mut args = vec!["serve", "--listen", &listen];
        args.extend(self.args.iter().map(String::as_str));
        let tag = TestTag::new();
        // The server's environment can't be read by other processes of the user, but its command line
        // can: it starts with this path.
        let program_dir = tag.directory();
        let program = program_dir.path().join("outpost");
        symlink(&self.binary, &program)
            .unwrap_or_else(|error| panic!("cannot link the binary: {error}"));
        let child = self.spawn_program(&program, &args, &tag);
        let sockets = self.more_listeners + usize::from(self.transport != Transport::Stdio);
        Server::started(child, self.transport, sockets, tag, [dir, program_dir]).await
    }

    /// Runs the binary with exactly these arguments and waits for its exit.
    pub async fn run(self, args: &[&str]) -> CommandOutput {
        let tag = TestTag::new();
        let mut child = self.spawn(args, &tag);
        drop(child.stdin.take());
        RunningCommand::new(child).wait().await
    }

    pub(crate) fn spawn(&self, args: &[&str], tag: &TestTag) -> Child {
        self.spawn_program(&self.binary, args, tag)
    }

    fn spawn_program(&self, program: &Path, args: &[&str], tag: &TestTag) -> Child {
        let mut command = match &self.prelude {
            Some(prelude) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", prelude]).arg(program);
                shell
            }
            None => Command::new(program),
        };
        if self.clean {
            command.env_clear();
        }
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // clap wraps `--help` at $COLUMNS.
            .env_remove("COLUMNS")
            // Ignore the configuration of the user who runs the tests. A test that needs the user's
            // file sets this to an empty value.
            .env("OUTPOST_CONFIG", "/dev/null")
            .env(TestTag::VARIABLE, tag.as_str())
            .env("XDG_STATE_HOME", tag.state_home())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
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

/// A running command. Dropping it kills it.
#[derive(Debug)]
pub struct RunningCommand {
    pub(crate) child: Child,
    /// None if stdout was taken before, to carry messages.
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Capture,
}

impl RunningCommand {
    pub(crate) fn new(mut child: Child) -> Self {
        let stderr = child.stderr.take().unwrap_or_else(|| panic!("no stderr"));
        RunningCommand {
            stdout: child.stdout.take().map(Capture::start),
            stderr: Capture::start(stderr),
            child,
        }
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until stdout contains `text`.
    pub async fn wait_for_stdout(&self, text: &str) {
        let stdout = self.stdout.as_ref().unwrap_or_else(|| panic!("no stdout"));
        let seen = stdout.until(|printed| printed.contains(text).then_some(()));
        let seen = seen.await.is_some();
        assert!(seen, "no {text:?} in {:?}", stdout.text());
    }

    /// Waits until stderr contains `text`.
    pub async fn wait_for_stderr(&self, text: &str) {
        let seen = self
            .stderr
            .until(|printed| printed.contains(text).then_some(()));
        let seen = seen.await.is_some();
        assert!(seen, "no {text:?} in {:?}", self.stderr.text());
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("cannot signal the command: {error}"));
    }

    /// The exit status, if it has exited.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills it and waits for its exit.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the exit.
    pub async fn wait(&mut self) -> CommandOutput {
        let status = deadline::poll_until("the exit of a command", || self.status()).await;
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
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.kill();
    }
}
