//! A user with its own runtime directory, for commands that use the per-user server.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::capture::Capture;
use crate::server_command::{CommandOutput, ServerCommand, captures};
use crate::{TestTag, deadline};

/// How long terminated processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A user without a running server. Dropping it checks that no process is left, so a test that
/// started the server must stop it.
#[derive(Debug)]
pub struct TestUser {
    binary: String,
    runtime_dir: TempDir,
    tag: TestTag,
}

impl TestUser {
    /// Creates a user. `built` is the path of the binary at compile time.
    pub fn new(built: &str) -> Self {
        let runtime_dir = tempfile::tempdir()
            .unwrap_or_else(|error| panic!("cannot create a directory: {error}"));
        TestUser {
            binary: built.to_owned(),
            runtime_dir,
            tag: TestTag::new(),
        }
    }

    /// The tag of every process of this user.
    pub fn tag(&self) -> &TestTag {
        &self.tag
    }

    /// The runtime directory. Tests may put other files there.
    pub fn dir(&self) -> &Path {
        self.runtime_dir.path()
    }

    /// The path of the per-user server's socket.
    pub fn socket(&self) -> PathBuf {
        self.dir().join("outpost/server.sock")
    }

    /// Builds a command of this user.
    pub fn command(&self) -> ServerCommand {
        let runtime_dir = self.dir().display().to_string();
        ServerCommand::new(&self.binary)
            .env("XDG_RUNTIME_DIR", &runtime_dir)
            .env(TestTag::VARIABLE, self.tag.as_str())
    }

    /// Runs a command and waits for its exit.
    pub async fn run(&self, args: &[&str]) -> CommandOutput {
        self.command().run(args).await
    }

    /// Runs a command that must succeed, and returns its stdout.
    pub async fn output(&self, args: &[&str]) -> String {
        let ended = self.run(args).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.stdout
    }

    /// Starts a detached script and returns its id.
    pub async fn detach(&self, script: &str) -> String {
        let id = self
            .output(&["run", "--detach", "--", "sh", "-c", script])
            .await;
        id.trim_end().to_owned()
    }

    /// Starts a command without waiting for its exit.
    pub fn spawn(&self, args: &[&str]) -> RunningCommand {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut child = self.command().spawn(&args, &self.tag);
        drop(child.stdin.take());
        let (stdout, stderr) = captures(&mut child);
        RunningCommand {
            child,
            stdout,
            stderr,
        }
    }

    /// Runs `outpost stop`.
    pub async fn stop(&self) -> String {
        self.output(&["stop"]).await
    }
}

impl Drop for TestUser {
    fn drop(&mut self) {
        let tag = &self.tag;
        if std::thread::panicking() {
            tag.kill_living();
            return;
        }
        let gone = deadline::poll_for(GONE_WITHIN, || tag.living().is_empty().then_some(()));
        let left = gone.map_or_else(|| tag.describe_living(), |()| String::new());
        tag.kill_living();
        assert!(left.is_empty(), "still running: {left}");
    }
}

/// A running command. Dropping it kills it.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    stdout: Capture,
    stderr: Capture,
}

impl RunningCommand {
    /// The process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until stdout contains `text`.
    pub async fn wait_for_stdout(&self, expected: &str) {
        let seen = self
            .stdout
            .until(|text| text.contains(expected).then_some(()))
            .await;
        assert!(
            seen.is_some(),
            "no {expected:?} in {:?}",
            self.stdout.text()
        );
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("cannot signal the command: {error}"));
    }

    /// Waits for the exit.
    pub async fn wait(&mut self) -> CommandOutput {
        let child = &mut self.child;
        let status =
            deadline::poll_until("the exit of a command", || child.try_wait().ok().flatten());
        CommandOutput {
            code: status.await.code(),
            stdout: self.stdout.whole().await,
            stderr: self.stderr.whole().await,
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
