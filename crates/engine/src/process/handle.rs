//! A process, for everybody but its actor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicBool};

use bytes::Bytes;
use outpost_journal::{End, Event, Exit, Journal, Page, Seq, Stream};
use outpost_process::{Control, Signal, Size};
use tokio::sync::Notify;

use crate::{
    About,
    ebb::Ebb,
    ladder::Ladder,
    stdin::{Stdin, WriteStatus},
};

/// Somebody who wants to know when a process has something to tell.
pub trait Watcher: Send + Sync {
    /// There is something new behind the owner's cursor. Called often, from
    /// the process's actor: it must be quick.
    fn news(&self);
}

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The child is alive.
    Running,
    /// The child has ended; its output may go on.
    Exited,
    /// All is over.
    Closed,
}

/// What a list shows of a process.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where it stands.
    pub state: State,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The number of its next event.
    pub next_seq: Seq,
    /// How much it has written.
    pub bytes_out: u64,
}

/// A handle on a process; clones name the same one.
#[derive(Clone)]
pub struct Process {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(super) about: Arc<About>,
    pub(crate) control: Control,
    log: Mutex<Log>,
    pub(crate) stdin: Stdin,
    /// Wakes long polls, at every event.
    readers: Notify,
    /// Wakes the actor: the owner has caught up or gone.
    pub(crate) room: Notify,
    /// Wakes whoever waits for the owner to have seen everything, or for the
    /// actor to be done.
    pub(super) delivered: Notify,
    pub(super) actor_done: AtomicBool,
    /// How the end is going.
    pub(super) ladder: Mutex<Ladder>,
    /// Wakes the actor: the ladder has a new deadline.
    pub(crate) ladder_moved: Notify,
    /// Hears what this one had retained, when it goes.
    ebb: Arc<Ebb>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let log = self.log.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.ebb.add(log.journal.retained_bytes());
    }
}

pub(super) struct Log {
    pub(super) journal: Journal,
    /// The connection that owns the process, while it is attached. It holds
    /// the process, so the process doesn't hold it.
    pub(super) watcher: Option<Weak<dyn Watcher>>,
}

impl Process {
    pub(crate) fn new(
        about: Arc<About>,
        control: Control,
        journal: Journal,
        stdin: Stdin,
        ebb: Arc<Ebb>,
    ) -> Self {
        Process {
            shared: Arc::new(Shared {
                about,
                control,
                log: Mutex::new(Log {
                    journal,
                    watcher: None,
                }),
                stdin,
                readers: Notify::new(),
                room: Notify::new(),
                delivered: Notify::new(),
                actor_done: AtomicBool::new(false),
                ladder: Mutex::default(),
                ladder_moved: Notify::new(),
                ebb,
            }),
        }
    }

    /// What it was started as.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.shared.about
    }

    /// The client's name for it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.about.id
    }

    /// The operating system's id of the child.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.shared.control.pid()
    }

    /// Whether it runs on a terminal.
    #[must_use]
    pub fn is_pty(&self) -> bool {
        self.shared.control.is_pty()
    }

    /// Where it stands.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let log = self.log();
        Summary {
            state: state_of(&log.journal),
            exit: log.journal.exit(),
            next_seq: log.journal.next_seq(),
            bytes_out: log.journal.bytes_out(),
        }
    }

    /// Whether the child is alive, as far as is known.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.log().journal.exit().is_none()
    }

    /// Appends events behind the cursor to `events`, until about `budget`
    /// bytes of output; says whether there are more.
    pub fn events_after(&self, cursor: Seq, budget: usize, events: &mut Vec<Event>) -> bool {
        let log = self.log();
        let mut bytes = 0;
        for event in log.journal.events_after(cursor) {
            if let Event::Output(chunk) = &event {
                // The first one goes whatever its size, else nothing would.
                if bytes > 0 && bytes + chunk.bytes.len() > budget {
                    return true;
                }
                bytes += chunk.bytes.len();
            }
            events.push(event);
        }
        false
    }

    /// How many bytes a page behind this cursor would hold at most.
    #[must_use]
    pub fn page_bytes(&self, after: Seq, max_bytes: Option<usize>) -> usize {
        self.log().journal.page_bytes(after, max_bytes)
    }

    /// Output behind the cursor, and the state.
    #[must_use]
    pub fn page(&self, after: Seq, max_bytes: Option<usize>) -> Page {
        self.log().journal.page(after, max_bytes)
    }

    /// Whether a reader at this cursor has something to hear at once.
    #[must_use]
    pub fn has_news_for(&self, after: Seq) -> bool {
        self.log().journal.has_news_for(after)
    }

    /// Waits until a reader at this cursor has something to hear.
    pub async fn news_for(&self, after: Seq) {
        loop {
            let notified = self.shared.readers.notified();
            if self.has_news_for(after) {
                return;
            }
            notified.await;
        }
    }

    /// Writes to the child, see [`WriteStatus`].
    pub async fn write(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        self.shared.stdin.write(bytes, id, end).await
    }

    /// Signals the whole group, unless the child has ended.
    pub fn signal(&self, signal: Signal) {
        if self.is_running()
            && let Err(error) = self.shared.control.signal(signal)
        {
            tracing::warn!(process = self.id(), %error, "failed to signal");
        }
    }

    /// Gives the terminal another size.
    pub fn resize(&self, size: Size) -> std::io::Result<()> {
        self.shared.control.resize(size)
    }

    /// Tells processes apart, whatever their clients call them.
    #[must_use]
    pub fn key(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Whether two handles name the same process.
    pub(crate) fn is(&self, other: &Process) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.log().journal.has_room()
    }

    pub(crate) fn retained_bytes(&self) -> u64 {
        self.log().journal.retained_bytes()
    }

    pub(crate) fn append_output(&self, stream: Stream, bytes: Bytes) {
        self.append(|journal| journal.output(stream, bytes));
    }

    pub(crate) fn append_exit(&self, exit: Exit) {
        self.append(|journal| journal.exited(exit));
    }

    pub(crate) fn append_close(&self, end: End) {
        self.append(|journal| journal.close(end));
    }

    fn append(&self, event: impl FnOnce(&mut Journal)) {
        let mut log = self.log();
        event(&mut log.journal);
        let watcher = log.watcher.as_ref().and_then(Weak::upgrade);
        drop(log);
        self.shared.readers.notify_waiters();
        if let Some(watcher) = watcher {
            watcher.news();
        }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.shared
            .log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn state_of(journal: &Journal) -> State {
    if journal.is_closed() {
        State::Closed
    } else if journal.exit().is_some() {
        State::Exited
    } else {
        State::Running
    }
}
