//! A runtime directory of its own, for commands that use the server of their user.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::capture::Capture;
use crate::launch::{Ended, Launch, captures};
use crate::{Mark, patience};

/// How long what was ended may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A user who has no server yet. Going out of scope checks that nothing is left alive: a test that
/// has started the server ends it.
#[derive(Debug)]
pub struct Home {
    binary: String,
    folder: TempDir,
    mark: Mark,
}

impl Home {
    /// A new one. `built` is where the binary was when the tests were compiled.
    pub fn of(built: &str) -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
        Home {
            binary: built.to_owned(),
            folder,
            mark: Mark::new(),
        }
    }

    /// What everything here carries.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// The runtime directory; there is room in it for other things.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the socket of the server is.
    pub fn socket(&self) -> PathBuf {
        self.folder().join("outpost/server.sock")
    }

    /// A command of this user, not started yet.
    pub fn launch(&self) -> Launch {
        let folder = self.folder().display().to_string();
        Launch::of(&self.binary)
            .env("XDG_RUNTIME_DIR", &folder)
            .env(Mark::VARIABLE, self.mark.as_str())
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Ended {
        self.launch().run(args).await
    }

    /// Runs a command that has to succeed, and gives what it printed.
    pub async fn output(&self, args: &[&str]) -> String {
        let ended = self.run(args).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.stdout
    }

    /// Starts a script that goes on alone, and gives its id.
    pub async fn detach(&self, script: &str) -> String {
        let id = self
            .output(&["run", "--detach", "--", "sh", "-c", script])
            .await;
        id.trim_end().to_owned()
    }

    /// Starts a command that takes its time.
    pub fn watch(&self, args: &[&str]) -> Watched {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut child = self.launch().spawn(&args, &self.mark);
        drop(child.stdin.take());
        let (stdout, stderr) = captures(&mut child);
        Watched {
            child,
            stdout,
            stderr,
        }
    }

    /// Ends the server, as a user would.
    pub async fn stop(&self) -> String {
        self.output(&["stop"]).await
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let mark = &self.mark;
        if std::thread::panicking() {
            mark.kill_living();
            return;
        }
        let gone = patience::seen_within(GONE_WITHIN, || mark.living().is_empty().then_some(()));
        let left = gone.map_or_else(|| mark.describe_living(), |()| String::new());
        mark.kill_living();
        assert!(left.is_empty(), "left alive: {left}");
    }
}

/// A command that is under way; it doesn't outlive the test.
#[derive(Debug)]
pub struct Watched {
    child: Child,
    stdout: Capture,
    stderr: Capture,
}

impl Watched {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until it has printed something.
    pub async fn prints(&self, words: &str) {
        let seen = self
            .stdout
            .until(|text| text.contains(words).then_some(()))
            .await;
        assert!(seen.is_some(), "no {words:?} in {:?}", self.stdout.text());
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("it can't be signalled: {error}"));
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Ended {
        let child = &mut self.child;
        let status = patience::seen("the end of a command", || child.try_wait().ok().flatten());
        Ended {
            code: status.await.code(),
            stdout: self.stdout.whole().await,
            stderr: self.stderr.whole().await,
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
