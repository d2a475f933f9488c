//! A mark on everything a test starts, by which it is found again.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};

use crate::patience;

/// A text that no other test has. What carries it in its environment or its command line was
/// started by this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// The variable that carries it.
    pub const VARIABLE: &str = "TESTKIT_MARK";

    /// A new one.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.subsec_nanos());
        Mark(format!("mark-{pid}-{count}-{nanos:09}"))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The processes that carry it and have not ended. This one doesn't count, and zombies don't:
    /// they have ended, and only their parent is to blame that it shows.
    pub fn living(&self) -> Vec<i32> {
        pids().filter(|pid| self.is_carried_by(*pid)).collect()
    }

    /// Waits until nothing that carries it is alive.
    pub async fn gone(&self) {
        patience::seen(&format!("the end of all with {}", self.0), || {
            self.living().is_empty().then_some(())
        })
        .await;
    }

    /// Waits until so many that carry it are alive.
    pub async fn alive(&self, count: usize) -> Vec<i32> {
        patience::seen(&format!("{count} alive with {}", self.0), || {
            let living = self.living();
            (living.len() == count).then_some(living)
        })
        .await
    }

    /// What is known about those that carry it, for a message.
    pub(crate) fn describe_living(&self) -> String {
        let line = |pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{pid} {command}")
        };
        let lines: Vec<_> = self.living().into_iter().map(line).collect();
        lines.join("; ")
    }

    /// Ends what should have ended by itself, after that has been noted.
    pub(crate) fn kill_living(&self) {
        for pid in self.living().into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    fn is_carried_by(&self, pid: i32) -> bool {
        if pid == std::process::id() as i32 {
            return false;
        }
        let carries = |file| {
            fs::read(format!("/proc/{pid}/{file}"))
                .is_ok_and(|bytes| contains(&bytes, self.0.as_bytes()))
        };
        (carries("environ") || carries("cmdline")) && is_alive(pid)
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

/// All processes of the host that can be seen.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|fields| !matches!(fields[0].as_str(), "Z" | "X"))
}

/// The fields of `/proc/PID/stat` from the state on: what stands before may hold spaces.
pub(crate) fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_carries_the_mark_is_found_until_it_ends() {
        let mark = Mark::new();
        let mut by_environment = std::process::Command::new("sleep")
            .arg("1000")
            .env(Mark::VARIABLE, mark.as_str())
            .spawn()
            .unwrap();
        let mut by_command = std::process::Command::new("sh")
            .args(["-c", "read x", mark.as_str()])
            .stdin(std::process::Stdio::piped())
            .env_clear()
            .spawn()
            .unwrap();
        let found = mark.alive(2).await;
        assert!(found.contains(&(by_environment.id() as i32)));
        assert!(found.contains(&(by_command.id() as i32)));

        by_command.stdin = None;
        mark.alive(1).await;
        by_environment.kill().unwrap();
        // It is a zombie now: nobody has waited for it.
        mark.gone().await;
        by_environment.wait().unwrap();
        by_command.wait().unwrap();
    }
}
