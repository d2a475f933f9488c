//! The thread that waits for events, and its handle.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

use super::permits::PermitSource;
use super::set::WatchSet;
use super::{Changes, MissingPathsRequest, WatchError, WatchPermits};

/// Receives the events of a watcher, on its thread. Must not block.
pub trait WatchListener: Send + Sync + 'static {
    /// Receives the changes of a watch, gathered for a while since the first of them.
    fn changed(&self, watch: WatchKey, changes: Changes);

    /// Receives that a missing path may exist now. Its watch has ended.
    fn missing_changed(&self, id: u64);
}

/// Identifies a watch of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchKey(u64);

/// How a path is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Watches everything below a directory, not only its entries. Follows no symbolic links there.
    pub recursive: bool,
}

/// Limits of a watcher. The defaults are the shipped values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchLimits {
    /// Watches at once.
    pub watches: usize,
    /// Watched files and directories: those on the way to the watched paths, and those in trees.
    pub directories: usize,
    /// Memory of the paths that were gathered and not yet dropped by the listener.
    pub change_bytes: usize,
    /// Time in which changes are gathered, from the first change on.
    pub gather: Duration,
}

impl Default for WatchLimits {
    fn default() -> Self {
        WatchLimits {
            watches: 256,
            directories: 32 * 1024,
            change_bytes: 4 * 1024 * 1024,
            gather: Duration::from_millis(200),
        }
    }
}

/// Watches paths on a thread of its own, which runs while there is a watch. A file system that does
/// not answer stops this watcher only. Dropping it ends all watches.
pub struct Watcher {
    shared: Arc<Shared>,
}

/// The state of a watcher, shared with its thread.
struct Shared {
    listener: Arc<dyn WatchListener>,
    limits: WatchLimits,
    permits: PermitSource,
    /// Wakes the thread for a command, or for the end.
    wake: OwnedFd,
    state: Mutex<State>,
}

/// The queued commands and the state of the thread, behind one lock.
#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    next_key: u64,
    /// The highest id of a request to watch missing paths.
    last_missing: Option<u64>,
    is_running: bool,
    has_ended: bool,
}

type Done<T> = Box<dyn FnOnce(T) + Send>;

/// A command to the watcher's thread.
enum Command {
    Watch(
        WatchKey,
        PathBuf,
        WatchOptions,
        Done<Result<(), WatchError>>,
    ),
    Unwatch(WatchKey),
    WatchMissing(WatchKey, MissingPathsRequest, Done<bool>),
}

impl Watcher {
    /// Creates a watcher without watches.
    pub fn new(limits: WatchLimits, listener: Arc<dyn WatchListener>) -> Result<Self, WatchError> {
        Self::create(limits, PermitSource(None), listener)
    }

    /// Creates a watcher that shares what the kernel permits with other watchers.
    pub fn with_permits(
        limits: WatchLimits,
        permits: Arc<dyn WatchPermits>,
        listener: Arc<dyn WatchListener>,
    ) -> Result<Self, WatchError> {
        Self::create(limits, PermitSource(Some(permits)), listener)
    }

    fn create(
        limits: WatchLimits,
        permits: PermitSource,
        listener: Arc<dyn WatchListener>,
    ) -> Result<Self, WatchError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Watcher {
            shared: Arc::new(Shared {
                listener,
                limits,
                permits,
                wake,
                state: Mutex::default(),
            }),
        })
    }

    /// Reserves the key of a watch.
    #[must_use]
    pub fn reserve(&self) -> WatchKey {
        self.shared.state().reserve()
    }

    /// Watches an absolute and normalized path, which need not exist. Calls `done` on the watcher's
    /// thread, before the first change is reported.
    pub fn watch(
        &self,
        key: WatchKey,
        path: PathBuf,
        options: WatchOptions,
        done: impl FnOnce(Result<(), WatchError>) + Send + 'static,
    ) {
        self.shared
            .send(Command::Watch(key, path, options, Box::new(done)));
    }

    /// Ends a watch. Changes that are being gathered are dropped.
    pub fn unwatch(&self, key: WatchKey) {
        self.shared.send(Command::Unwatch(key));
    }

    /// Watches missing paths until one of them may exist, instead of earlier paths with a lower id.
    /// Calls `done` with whether they are watched, before that is reported.
    pub fn watch_missing(
        &self,
        paths: MissingPathsRequest,
        done: impl FnOnce(bool) + Send + 'static,
    ) {
        let mut state = self.shared.state();
        if state.last_missing.is_some_and(|last| paths.id <= last) {
            drop(state);
            return done(false);
        }
        state.last_missing = Some(paths.id);
        let key = state.reserve();
        drop(state);
        self.shared
            .send(Command::WatchMissing(key, paths, Box::new(done)));
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.wake();
    }
}

impl State {
    fn reserve(&mut self) -> WatchKey {
        self.next_key += 1;
        WatchKey(self.next_key)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Fails only if the counter is full, and then the thread wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Queues a command and starts the thread if it does not run. The sender bounds the commands: each
    /// one is a request in flight.
    fn send(self: &Arc<Self>, command: Command) {
        let mut state = self.state();
        state.commands.push_back(command);
        if !state.is_running {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name("watcher".to_owned());
            match thread.spawn(move || shared.run()) {
                Ok(_) => state.is_running = true,
                Err(error) => {
                    let command = state.commands.pop_back();
                    drop(state);
                    if let Some(command) = command {
                        command.fail(error.into());
                    }
                    return;
                }
            }
        }
        drop(state);
        self.wake();
    }

    /// The thread: executes commands, reads events and reports changes until there is no watch.
    fn run(self: Arc<Self>) {
        let mut set = WatchSet::new(
            Arc::clone(&self.listener),
            self.limits,
            self.permits.clone(),
        );
        loop {
            loop {
                let mut state = self.state();
                if state.has_ended {
                    return;
                }
                let Some(command) = state.commands.pop_front() else {
                    if set.is_empty() {
                        state.is_running = false;
                        return;
                    }
                    break;
                };
                drop(state);
                command.execute(&mut set);
            }
            self.wait(&set);
            set.read_events();
            set.report();
        }
    }

    /// Waits for a command, for an event, or until changes are due.
    fn wait(&self, set: &WatchSet) {
        let timeout = set.next_report().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let mut waits = vec![PollFd::new(&self.wake, PollFlags::IN)];
        waits.extend(
            set.instance()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        // An interrupted wait ends early, which is harmless.
        let _ = poll(&mut waits, timeout.as_ref());
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut counter);
    }
}

impl Command {
    fn execute(self, set: &mut WatchSet) {
        match self {
            Self::Watch(key, path, options, done) => done(set.watch(key, path, options)),
            Self::Unwatch(key) => set.unwatch(key),
            Self::WatchMissing(key, paths, done) => done(set.watch_missing(key, &paths)),
        }
    }

    fn fail(self, error: WatchError) {
        match self {
            Self::Watch(_, _, _, done) => done(Err(error)),
            Self::Unwatch(_) => {}
            Self::WatchMissing(_, _, done) => done(false),
        }
    }
}
