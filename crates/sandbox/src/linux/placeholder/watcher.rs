//! A process that outlives the server and removes its placeholders.
//!
//! A killed server can't remove its placeholders, and empty directories named `.git` would stay until the
//! next sandboxed start there. So the server starts a watcher with its first placeholder: the helper's
//! program with the argument [`WATCH`]. It tells the watcher where placeholders may be. When the server is
//! gone, the socket between them ends, and the watcher removes each remaining placeholder as soon as no
//! sandbox holds its lock.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::directory::{self, OPEN_FLAGS, Removal, WritableGuard};
use crate::linux::helper::{HelperCommand, WATCH, socket_pair};
use crate::linux::nofollow;

/// The first byte of a message: a placeholder may be at the path that follows, or is no longer there.
const ADDED: u8 = b'+';
const REMOVED: u8 = b'-';

/// The longest message: one byte and a path.
const MAX_MESSAGE: usize = 1 + libc::PATH_MAX as usize;

/// The intervals at which the watcher looks for ended sandboxes: a lock has no event without a thread.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
const LAST_INTERVAL: Duration = Duration::from_secs(1);

/// The server's side of the watcher.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    /// None if there is no program to start.
    command: Option<HelperCommand>,
    /// The watcher has the other end. Closing this one makes it remove what is left and exit. None until it
    /// is started.
    socket: Mutex<Option<OwnedFd>>,
}

impl Watcher {
    pub(super) fn new(command: HelperCommand) -> Self {
        Watcher {
            command: Some(command),
            socket: Mutex::default(),
        }
    }

    /// Tells the watcher of a path where a placeholder will be created. Starts it if necessary, and then
    /// tells it of `all` paths.
    pub(super) fn add(&self, path: &Path, all: &HashMap<PathBuf, usize>) {
        let Some(command) = &self.command else {
            return;
        };
        let mut socket = self.socket.lock();
        if socket
            .as_ref()
            .is_some_and(|socket| send(socket, ADDED, path))
        {
            return;
        }
        match start(command) {
            Ok(started) => {
                for path in all.keys() {
                    send(&started, ADDED, path);
                }
                *socket = Some(started);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot start a watcher; placeholders stay if this server is killed");
            }
        }
    }

    /// Tells the watcher of a path where a placeholder was removed.
    pub(super) fn remove(&self, path: &Path) {
        if let Some(socket) = &*self.socket.lock() {
            send(socket, REMOVED, path);
        }
    }
}

/// Sends a message. Returns whether the watcher lives. A message that doesn't fit is lost; then the watcher
/// looks for a placeholder in vain, or leaves one.
fn send(socket: &OwnedFd, change: u8, path: &Path) -> bool {
    let message = [&[change], path.as_os_str().as_bytes()].concat();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = rustix::net::send(socket, &message, flags);
    !matches!(sent, Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN))
}

/// Starts a watcher in a thread that also reaps it, because `fork` and `exec` would delay the start of the
/// sandboxed process. The socket keeps messages until then.
fn start(command: &HelperCommand) -> io::Result<OwnedFd> {
    let (ours, theirs) = socket_pair()?;
    let argv = command.argv_for(WATCH);
    let mut watcher = Command::new(&command.program);
    watcher
        .arg0(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .envs(HelperCommand::environment())
        .current_dir("/")
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals of a terminal are not meant for it.
        .process_group(0);
    let run = move || {
        let spawned = watcher.spawn();
        // Closes the watcher's end of the socket here.
        drop(watcher);
        match spawned {
            Ok(mut child) => drop(child.wait()),
            Err(error) => {
                tracing::warn!(%error, "cannot start a watcher; placeholders stay if this server is killed");
            }
        }
    };
    let name = "placeholders".to_owned();
    thread::Builder::new().name(name).spawn(run)?;
    Ok(ours)
}

/// Runs the watcher, with the socket as stdin. Returns when the server is gone and no placeholder is left.
pub(in crate::linux) fn run() {
    let mut paths = recv_paths(rustix::stdio::stdin());
    let mut interval = FIRST_INTERVAL;
    loop {
        remove_free(&mut paths);
        if paths.is_empty() {
            return;
        }
        thread::sleep(interval);
        interval = (interval * 2).min(LAST_INTERVAL);
    }
}

/// Receives messages until the server is gone, and returns the paths that are left.
fn recv_paths(socket: impl AsFd) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    let mut message = vec![0; MAX_MESSAGE];
    loop {
        let received = rustix::io::retry_on_intr(|| {
            rustix::net::recv(&socket, &mut message[..], RecvFlags::empty())
        });
        let Ok((length @ 1.., _)) = received else {
            return paths;
        };
        let (change, path) = (
            message[0],
            Path::new(OsStr::from_bytes(&message[1..length])),
        );
        if change == ADDED {
            paths.insert(path.to_owned());
        } else {
            paths.remove(path);
        }
    }
}

/// Removes the placeholders that no sandbox holds. Those that are held stay in `paths`.
fn remove_free(paths: &mut BTreeSet<PathBuf>) {
    // A placeholder inside another placeholder comes first.
    for path in paths.clone().iter().rev() {
        if remove(path) == Ok(Removal::Held) {
            continue;
        }
        paths.remove(path);
        if let Some(outer) = path.parent().filter(|outer| paths.contains(*outer)) {
            // On failure it counts as a user's directory and stays.
            let _ = mark_again(outer);
        }
    }
}

fn remove(path: &Path) -> Result<Removal, Errno> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
    let parent = nofollow::open(parent)?;
    let _guard = WritableGuard::new(&parent);
    let directory = rustix::fs::openat(&parent, name, OPEN_FLAGS, Mode::empty())?;
    Ok(directory::remove(&directory, &parent, name))
}

fn mark_again(path: &Path) -> Result<(), Errno> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
    let parent = nofollow::open(parent)?;
    let directory = rustix::fs::openat(&parent, name, OPEN_FLAGS, Mode::empty())?;
    if directory::is_empty(&directory)? {
        directory::mark(&directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::fs::FlockOperation;

    use super::*;
    use crate::linux::placeholder::set::Placeholder;

    #[test]
    fn paths_are_received_until_the_server_is_gone() {
        let (ours, theirs) = socket_pair().expect("socket pair");
        for (change, path) in [(ADDED, "/a"), (ADDED, "/b"), (REMOVED, "/a"), (ADDED, "/c")] {
            assert!(send(&ours, change, Path::new(path)));
        }
        drop(ours);
        let paths = recv_paths(&theirs);
        assert_eq!(paths, ["/b", "/c"].map(PathBuf::from).into());
        let (ours, theirs) = socket_pair().expect("socket pair");
        drop(theirs);
        assert!(!send(&ours, ADDED, Path::new("/a")), "it is gone");
    }

    #[test]
    fn free_placeholders_are_removed_and_others_stay() {
        let directory = tempfile::tempdir().expect("create directory");
        let directory = directory.path().canonicalize().expect("canonicalize");
        let at = |name: &str| directory.join(name);
        let names = ["free", "held", "outer", "outer/inner", "filled", "gone"];
        let mut paths: BTreeSet<_> = names.map(at).into();
        let mut created: Vec<_> = ["free", "held", "outer", "filled"]
            .map(|name| Placeholder::create(&at(name)).expect("create"))
            .into();
        created.push(Placeholder::create(&at("outer/inner")).expect("create"));
        mark_again(&at("outer")).expect("mark");
        // Closes them, and so releases their locks.
        drop(created);
        std::fs::write(at("filled/file"), "").expect("write");
        let held = std::fs::File::open(at("held")).expect("open");
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockShared).expect("lock");
        remove_free(&mut paths);
        assert_eq!(paths, [at("held")].into());
        let left = |name: &str| at(name).exists();
        assert_eq!(
            ["free", "held", "outer", "filled"].map(left),
            [false, true, false, true]
        );
        drop(held);
        remove_free(&mut paths);
        assert!(paths.is_empty() && !left("held"));
    }
}
