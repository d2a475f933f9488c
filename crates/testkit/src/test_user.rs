//! A user with its own runtime directory, for commands that use the per-user server.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::TestTag;
use crate::server_command::{CommandOutput, RunningCommand, ServerCommand};

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
        let tag = TestTag::new();
        TestUser {
            binary: built.to_owned(),
            // The server's environment can't be read, but its command line has this path.
            runtime_dir: tag.directory(),
            tag,
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

    /// The file with the key of a process on a server that doesn't list its sessions.
    pub fn key_file(&self, process: &str) -> PathBuf {
        self.dir().join("state/outpost/sessions").join(process)
    }

    /// Builds a command of this user.
    pub fn command(&self) -> ServerCommand {
        let runtime_dir = self.dir().display().to_string();
        ServerCommand::new(&self.binary)
            .env("XDG_RUNTIME_DIR", &runtime_dir)
            .env("XDG_STATE_HOME", &format!("{runtime_dir}/state"))
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
        let mut child = self.command().spawn(args, &self.tag);
        drop(child.stdin.take());
        RunningCommand::new(child)
    }

    /// Runs `outpost stop`.
    pub async fn stop(&self) -> String {
        self.output(&["stop"]).await
    }
}

impl Drop for TestUser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return self.tag.kill_living();
        }
        let left = self.tag.kill_remaining();
        assert!(left.is_empty(), "still running: {left}");
    }
}
