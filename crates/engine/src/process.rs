//! A process, for everybody but its actor.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use outpost_journal::{Event, Exit, Journal, Page, Seq, Stream};
use outpost_process::{Control, Signal, Size};
use tokio::sync::Notify;

use crate::{
    About, Delivery,
    actor::until,
    clock,
    ladder::{Ladder, Step},
    stdin::{Stdin, WriteStatus},
};

/// How often a tree that was asked to end is looked at, once its leader has
/// gone: nothing tells when the last of it goes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    about: Arc<About>,
    pub(crate) control: Control,
    log: Mutex<Log>,
    pub(crate) stdin: Stdin,
    /// Wakes long polls, at every event.
    readers: Notify,
    /// Wakes the actor: the owner has caught up or gone.
    pub(crate) room: Notify,
    /// Wakes whoever waits for the owner to have seen everything, or for the
    /// actor to be done.
    delivered: Notify,
    actor_done: AtomicBool,
    /// How the end is going.
    ladder: Mutex<Ladder>,
    /// Wakes the actor: the ladder has a new deadline.
    pub(crate) ladder_moved: Notify,
}

struct Log {
    journal: Journal,
    /// The connection that owns the process, while it is attached. It holds
    /// the process, so the process doesn't hold it.
    watcher: Option<Weak<dyn Watcher>>,
}

impl Process {
    pub(crate) fn new(about: Arc<About>, control: Control, journal: Journal, stdin: Stdin) -> Self {
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

    /// Makes somebody the owner, who has seen everything up to `cursor`, or
    /// goes on where the last owner stopped; `start` hears where that is,
    /// before the first news.
    pub(crate) fn attach(
        &self,
        cursor: Option<Seq>,
        watcher: &Arc<dyn Watcher>,
        start: impl FnOnce(Seq),
    ) {
        let mut log = self.log();
        let cursor = cursor.unwrap_or_else(|| log.journal.owner().cursor());
        log.journal.attach(cursor);
        log.watcher = Some(Arc::downgrade(watcher));
        start(log.journal.owner().cursor());
        drop(log);
        watcher.news();
    }

    /// An owner that acknowledges is waited for before it has ever attached.
    pub(crate) fn wait_for_owner(&self) {
        self.log().journal.attach(Seq::START);
    }

    /// Waits until its actor has nothing left to do.
    pub(crate) async fn gone(&self) {
        loop {
            let ended = self.shared.delivered.notified();
            if self.is_done() {
                return;
            }
            ended.await;
        }
    }

    /// The actor has nothing left to do.
    pub(crate) fn actor_is_done(&self) {
        self.shared.actor_done.store(true, Ordering::SeqCst);
        self.shared.delivered.notify_waiters();
    }

    /// The owner's connection is gone. One that acknowledges is waited for all
    /// the same.
    pub(crate) fn detach(&self, delivery: Delivery) {
        let mut log = self.log();
        log.watcher = None;
        if delivery == Delivery::Push {
            log.journal.detach();
        }
        drop(log);
        self.shared.room.notify_one();
    }

    /// Nobody will ever own it again.
    pub(crate) fn abandon(&self) {
        self.detach(Delivery::Push);
        self.shared.delivered.notify_waiters();
    }

    /// Keeps everything until [`Process::release`]: an owner has come back.
    pub(crate) fn hold(&self) {
        self.log().journal.hold();
    }

    /// The owner has had its chance to read.
    pub fn release(&self) {
        self.log().journal.release();
        self.shared.room.notify_one();
    }

    /// Waits until an owner that acknowledges has seen the close.
    pub(crate) async fn delivered(&self) {
        loop {
            let delivered = self.shared.delivered.notified();
            if self.log().journal.is_delivered() {
                return;
            }
            delivered.await;
        }
    }

    /// The owner has seen everything up to `cursor`.
    pub fn advance(&self, cursor: Seq) {
        let mut log = self.log();
        let held_back = !log.journal.has_room();
        log.journal.advance(cursor);
        let room = held_back && log.journal.has_room();
        let delivered = log.journal.is_delivered();
        drop(log);
        if room {
            self.shared.room.notify_one();
        }
        if delivered {
            self.shared.delivered.notify_waiters();
        }
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

    /// Ends it: at once, or after the given grace, or after its own.
    pub fn end(&self, grace: Option<Duration>) {
        let grace = grace.unwrap_or(self.shared.about.kill_grace);
        let step = self.ladder().end(clock::now(), grace);
        self.climb(step);
        self.shared.ladder_moved.notify_one();
    }

    /// Kills what the child has left running.
    pub fn kill_tree(&self) {
        self.climb(Step::Kill);
    }

    /// A process that was asked to end may have left others that take their
    /// time; they have until the grace is over.
    pub(crate) async fn see_the_ladder_through(&self) {
        loop {
            let Some(deadline) = self.ladder().deadline() else {
                return;
            };
            if !self.has_leftovers() {
                return;
            }
            tokio::select! {
                () = until(Some(deadline)) => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.shared.ladder_moved.notified() => {}
            }
            let step = self.ladder().tick(clock::now());
            self.climb(step);
        }
    }

    /// Whether something of its tree is alive although the child has ended.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.shared.control.has_leftovers()
    }

    /// Whether its actor has nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.actor_done.load(Ordering::SeqCst)
    }

    /// Keeps nothing of its output any more.
    pub(crate) fn forget_output(&self) {
        self.log().journal.forget_output();
    }

    pub(crate) fn climb(&self, step: Step) {
        let control = &self.shared.control;
        let done = match step {
            Step::Nothing => Ok(()),
            // A stopped process can't act on the others before it continues.
            Step::Ask => [Signal::Hangup, Signal::Terminate, Signal::Continue]
                .into_iter()
                .try_for_each(|signal| control.signal(signal).map(drop)),
            Step::Kill => control.kill_tree(),
        };
        if let Err(error) = done {
            tracing::warn!(process = self.id(), ?step, %error, "failed to end");
        }
    }

    pub(crate) fn ladder(&self) -> MutexGuard<'_, Ladder> {
        self.shared
            .ladder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn append_close(&self) {
        self.append(Journal::close);
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

    fn log(&self) -> MutexGuard<'_, Log> {
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
