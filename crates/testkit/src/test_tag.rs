//! A tag on every process a test starts, to find it again.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::deadline;

/// How long killed processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A unique text in the environment or command line of every process of one test, and the directory for
/// what these processes store for each other.
#[derive(Clone, Debug)]
pub struct TestTag {
    text: String,
    state: Arc<TempDir>,
}

impl TestTag {
    /// The environment variable with the tag.
    pub const VARIABLE: &str = "TESTKIT_TAG";

    /// Creates a unique tag.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.subsec_nanos());
        let state = tempfile::tempdir();
        let state = state.unwrap_or_else(|error| panic!("cannot create a directory: {error}"));
        TestTag {
            text: format!("tag-{pid}-{count}-{nanos:09}"),
            state: Arc::new(state),
        }
    }

    /// The value of `XDG_STATE_HOME` for its processes: commands of other tests and of the user who runs
    /// them must not decide what a sandbox grants. It lives as long as the tag.
    pub fn state_home(&self) -> &Path {
        self.state.path()
    }

    /// The text of the tag.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Creates a temporary directory whose name contains the tag.
    pub(crate) fn directory(&self) -> TempDir {
        tempfile::Builder::new()
            .prefix(&self.text)
            .tempdir()
            .unwrap_or_else(|error| panic!("cannot create a directory: {error}"))
    }

    /// Lists running processes with the tag, except this one. Zombies don't count.
    pub fn living(&self) -> Vec<i32> {
        pids().filter(|pid| self.is_on(*pid)).collect()
    }

    /// Waits until no process with the tag is running.
    pub async fn gone(&self) {
        deadline::poll_until(
            &format!("the exit of all processes with {}", self.text),
            || self.living().is_empty().then_some(()),
        )
        .await;
    }

    /// Waits until `count` processes with the tag are running.
    pub async fn alive(&self, count: usize) -> Vec<i32> {
        deadline::poll_until(&format!("{count} processes with {}", self.text), || {
            let living = self.living();
            (living.len() == count).then_some(living)
        })
        .await
    }

    /// Waits until no process with the tag is running, and kills those that remain. Returns their
    /// ids and command lines.
    pub(crate) fn kill_remaining(&self) -> String {
        deadline::poll_for(GONE_WITHIN, || self.living().is_empty().then_some(()));
        let line = |pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{pid} {command}")
        };
        let remaining: Vec<_> = self.living().into_iter().map(line).collect();
        self.kill_living();
        remaining.join("; ")
    }

    /// Kills the running processes with the tag.
    pub(crate) fn kill_living(&self) {
        for pid in self.living().into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    fn is_on(&self, pid: i32) -> bool {
        let tag = self.text.as_bytes();
        let carries = |file| {
            let bytes = fs::read(format!("/proc/{pid}/{file}"));
            bytes.is_ok_and(|bytes| bytes.windows(tag.len()).any(|part| part == tag))
        };
        // Subreapers and sandbox helpers, such as the watcher of placeholders, inherit the name of the
        // server's program, but belong to no test.
        let is_helper = || {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let argument = line.split(|byte| *byte == 0).nth(1);
            argument == Some(b"subreaper") || argument == Some(b"confine")
        };
        let is_alive = || stat(pid).is_some_and(|fields| !matches!(&*fields[0], "Z" | "X"));
        pid != std::process::id() as i32
            && (carries("environ") || (carries("cmdline") && !is_helper()))
            && is_alive()
    }
}

impl Default for TestTag {
    fn default() -> Self {
        Self::new()
    }
}

/// Lists the visible processes of the host.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields of `/proc/PID/stat` from the state on; the earlier ones may contain spaces.
pub(crate) fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tagged_processes_are_found_until_they_exit() {
        let tag = TestTag::new();
        let mut by_environment = std::process::Command::new("sleep")
            .arg("1000")
            .env(TestTag::VARIABLE, tag.as_str())
            .spawn()
            .unwrap();
        let mut by_command = std::process::Command::new("sh")
            .args(["-c", "read x", tag.as_str()])
            .stdin(std::process::Stdio::piped())
            .env_clear()
            .spawn()
            .unwrap();
        let found = tag.alive(2).await;
        assert!(found.contains(&(by_environment.id() as i32)));
        assert!(found.contains(&(by_command.id() as i32)));

        by_command.stdin = None;
        tag.alive(1).await;
        by_environment.kill().unwrap();
        // It is a zombie until `wait`.
        tag.gone().await;
        by_environment.wait().unwrap();
        by_command.wait().unwrap();
    }
}
