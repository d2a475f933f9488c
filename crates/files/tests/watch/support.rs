//! A watcher and a directory to change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use outpost_files::{
    Changes, MissingPathsRequest, WatchError, WatchKey, WatchLimits, WatchListener, WatchOptions,
    Watcher,
};

/// The time after which a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A report of the watcher.
#[derive(Debug)]
pub(crate) enum Report {
    Changed {
        watch: WatchKey,
        paths: BTreeSet<PathBuf>,
        unreadable: BTreeSet<PathBuf>,
        missed: bool,
    },
    MissingChanged(u64),
}

struct Reports(SyncSender<Report>);

impl WatchListener for Reports {
    fn changed(&self, watch: WatchKey, changes: Changes) {
        let report = Report::Changed {
            watch,
            paths: changes.paths().cloned().collect(),
            unreadable: changes.unreadable().cloned().collect(),
            missed: changes.missed(),
        };
        self.0.send(report).expect("a test that listens");
    }

    fn missing_changed(&self, id: u64) {
        let report = Report::MissingChanged(id);
        self.0.send(report).expect("a test that listens");
    }
}

/// A watcher and an empty directory without symbolic links in its path.
pub(crate) struct Fixture {
    pub(crate) watcher: Watcher,
    reports: Receiver<Report>,
    root: tempfile::TempDir,
    /// A watched directory, whose change marks the end of earlier events.
    barrier: (tempfile::TempDir, WatchKey, u32),
    fired: Vec<u64>,
    /// Names of unreadable directories, in the order in which they were reported.
    unreadable: Vec<String>,
}

impl Fixture {
    /// A watcher that has no more rights than the mode of a file gives it, also as root.
    pub(crate) fn unprivileged() -> Self {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let privileged = capabilities(None).expect("capabilities");
        let mut sets = privileged;
        sets.effective
            .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        // The thread of the watcher inherits them.
        set_capabilities(None, sets).expect("fewer capabilities");
        let fixture = Self::new();
        set_capabilities(None, privileged).expect("the permitted capabilities");
        fixture
    }

    pub(crate) fn new() -> Self {
        Self::with_limits(WatchLimits {
            gather: Duration::from_millis(20),
            ..WatchLimits::default()
        })
    }

    pub(crate) fn with_limits(limits: WatchLimits) -> Self {
        let (sender, reports) = sync_channel(1024);
        let watcher = Watcher::new(limits, Arc::new(Reports(sender))).expect("a watcher");
        let directory = || {
            let parent = std::env::temp_dir().canonicalize().expect("a path");
            tempfile::tempdir_in(parent).expect("a directory")
        };
        let barrier = directory();
        let fixture = Fixture {
            root: directory(),
            reports,
            barrier: (barrier, watcher.reserve(), 0),
            watcher,
            fired: Vec::new(),
            unreadable: Vec::new(),
        };
        let path = fixture.barrier.0.path().to_owned();
        let key = fixture.barrier.1;
        fixture.open(key, &path, false).expect("a watch");
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name {
            "" => self.root.path().to_owned(),
            name => self.root.path().join(name),
        }
    }

    fn open(&self, key: WatchKey, path: &Path, recursive: bool) -> Result<(), WatchError> {
        let (sender, done) = mpsc::sync_channel(1);
        let options = WatchOptions { recursive };
        self.watcher
            .watch(key, path.to_owned(), options, move |opened| {
                sender.send(opened).expect("a test that waits");
            });
        done.recv_timeout(PATIENCE).expect("an answer")
    }

    pub(crate) fn try_watch(&self, path: &Path, recursive: bool) -> Result<WatchKey, WatchError> {
        let key = self.watcher.reserve();
        self.open(key, path, recursive)?;
        Ok(key)
    }

    pub(crate) fn watch(&self, name: &str) -> WatchKey {
        self.try_watch(&self.path(name), false).expect("a watch")
    }

    pub(crate) fn watch_tree(&self, name: &str) -> WatchKey {
        self.try_watch(&self.path(name), true).expect("a watch")
    }

    /// Watches missing paths below the directory.
    pub(crate) fn missing(&self, id: u64, missing: &[&str], present: Option<&str>) -> bool {
        self.missing_paths(MissingPathsRequest {
            id,
            missing: missing.iter().map(|name| Some(self.path(name))).collect(),
            present: present.map(|name| Some(self.path(name))),
        })
    }

    pub(crate) fn missing_paths(&self, paths: MissingPathsRequest) -> bool {
        let (sender, done) = mpsc::sync_channel(1);
        self.watcher.watch_missing(paths, move |watching| {
            sender.send(watching).expect("a test that waits");
        });
        done.recv_timeout(PATIENCE).expect("an answer")
    }

    /// The watches of missing paths that have fired because of what happened until now.
    pub(crate) fn fired(&mut self) -> Vec<u64> {
        self.changes_until_barrier(None);
        std::mem::take(&mut self.fired)
    }

    /// The changed names of a watch because of what happened until now, and whether some were missed.
    pub(crate) fn changes(&mut self, watch: WatchKey) -> (BTreeSet<String>, bool) {
        self.changes_until_barrier(Some(watch))
    }

    /// The unreadable directories that were reported until now. Call [`Self::changes`] before.
    pub(crate) fn unreadable(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unreadable)
    }

    /// The changed names of a watch.
    #[track_caller]
    pub(crate) fn assert_changes(&mut self, watch: WatchKey, expected: &[&str]) {
        let (names, missed) = self.changes(watch);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(names, expected);
        assert!(!missed, "nothing is lost");
    }

    fn changes_until_barrier(&mut self, watch: Option<WatchKey>) -> (BTreeSet<String>, bool) {
        let mut changed = (BTreeSet::new(), false);
        // Changes of a watch are due at the latest with a change after them, so the second of two
        // changes in a row comes after everything before the first.
        for _ in 0..2 {
            self.barrier.2 += 1;
            let mark = self.barrier.0.path().join(self.barrier.2.to_string());
            fs::write(&mark, "").expect("a file");
            let deadline = Instant::now() + PATIENCE;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match self.reports.recv_timeout(left).expect("a report in time") {
                    Report::MissingChanged(id) => self.fired.push(id),
                    Report::Changed {
                        watch,
                        paths,
                        missed,
                        ..
                    } if watch == self.barrier.1 => {
                        if missed || paths.contains(&mark) {
                            break;
                        }
                    }
                    Report::Changed {
                        watch: key,
                        paths,
                        unreadable,
                        missed,
                    } if Some(key) == watch => {
                        changed.1 |= missed;
                        changed.0.extend(paths.iter().map(|path| self.name(path)));
                        let names = unreadable.iter().map(|path| self.name(path));
                        let names: Vec<_> = names.collect();
                        self.unreadable.extend(names);
                    }
                    Report::Changed { .. } => {}
                }
            }
        }
        changed
    }

    fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(self.root.path()).expect("a path below");
        name.to_str().expect("text").to_owned()
    }

    pub(crate) fn write(&self, name: &str) {
        fs::write(self.path(name), "text").expect("a file");
    }

    pub(crate) fn mkdir(&self, name: &str) {
        fs::create_dir_all(self.path(name)).expect("a directory");
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("a rename");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("a removal");
    }

    pub(crate) fn rmdir(&self, name: &str) {
        fs::remove_dir_all(self.path(name)).expect("a removal");
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).expect("a link");
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.path(name), mode).expect("a mode");
    }

    /// Runs a program with the path of a name as its last argument.
    pub(crate) fn run(&self, program: &[&str], name: &str) {
        let mut command = Command::new(program[0]);
        let status = command.args(&program[1..]).arg(self.path(name)).status();
        assert!(status.expect("a program").success());
    }
}
