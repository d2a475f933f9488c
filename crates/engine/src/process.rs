//! The shared handle on a process. Its actor is in `actor`.

use std::sync::{Arc, Weak, atomic::AtomicBool};

use bytes::Bytes;
use outpost_journal::{Event, Exit, Journal, Page, Seq, Stream};
use outpost_netproxy::Activity;
use outpost_process::Control;
use outpost_types::{ProcessState, Signal, TerminalSize, WriteStatus};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    Delivery, Peer, ProcessInfo, clock,
    freed_bytes::FreedBytes,
    kept_output::{Log, LogGuard, MIN_BYTES, OutputShare, ReadAllowance},
    network::ProxyActivity,
    stdin::Stdin,
    termination::Termination,
};

mod terminate;
pub(crate) use terminate::KILL_TIMEOUT;

/// Receives notifications about new events of a process, as the feed of the owning connection does.
pub trait EventListener: Send + Sync {
    /// Called for every event after the owner's cursor, from the process's actor. Must
    /// not block.
    fn events_available(&self);
}

/// A snapshot of a process for listings.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The state.
    pub state: ProcessState,
    /// The exit, once it has exited.
    pub exit: Option<Exit>,
    /// The sequence number of the next event.
    pub next_seq: Seq,
    /// Total bytes of output.
    pub bytes_out: u64,
}

/// A handle on a process. Clones refer to the same process.
#[derive(Clone)]
pub struct Process {
    pub(crate) shared: Arc<Shared>,
}

/// The state of a process, shared by its handles and its actor.
pub(crate) struct Shared {
    pub(crate) info: Arc<ProcessInfo>,
    pub(crate) control: Control,
    log: Mutex<Log>,
    pub(crate) stdin: Stdin,
    /// Wakes long polls at every event.
    readers: Notify,
    /// Wakes the actor: the window is open again, or the owner has detached.
    pub(crate) space: Notify,
    /// Notified when the owner has received everything, and when the actor has finished.
    delivered: Notify,
    actor_done: AtomicBool,
    termination: Mutex<Termination>,
    /// Wakes the actor: the termination has a new deadline.
    pub(crate) termination_changed: Notify,
    /// Counts the retained bytes when this is dropped.
    freed: Arc<FreedBytes>,
    /// Memory of the kept output of its peer's processes.
    output_share: OutputShare,
    /// The proxy of the process, if it has one.
    network: Option<ProxyActivity>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let log = self.log.get_mut();
        self.freed.add(log.journal.retained_bytes());
        self.output_share.change(log.charged, 0);
    }
}

impl Process {
    pub(crate) fn new(
        info: Arc<ProcessInfo>,
        control: Control,
        journal: Journal,
        stdin: Stdin,
        freed: Arc<FreedBytes>,
        output_share: OutputShare,
        network: Option<ProxyActivity>,
    ) -> Self {
        Process {
            shared: Arc::new(Shared {
                control,
                log: Mutex::new(Log {
                    journal,
                    listener: None,
                    info_bytes: info.bytes(),
                    charged: 0,
                }),
                info,
                stdin,
                readers: Notify::new(),
                space: Notify::new(),
                delivered: Notify::new(),
                actor_done: AtomicBool::new(false),
                termination: Mutex::default(),
                termination_changed: Notify::new(),
                freed,
                output_share,
                network,
            }),
        }
    }

    /// The description of the process.
    #[must_use]
    pub fn info(&self) -> &ProcessInfo {
        &self.shared.info
    }

    /// The process id chosen by the client.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.info.id
    }

    /// The pid of the child.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.shared.control.pid()
    }

    /// Whether it runs on a terminal.
    #[must_use]
    pub fn is_pty(&self) -> bool {
        self.shared.control.is_pty()
    }

    /// The decisions and the traffic of its proxy, if it has one.
    #[must_use]
    pub fn network_activity(&self) -> Option<&Arc<Activity>> {
        let network = self.shared.network.as_ref();
        network.map(|network| &network.activity)
    }

    /// Takes a snapshot.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let journal = &self.log().journal;
        Summary {
            state: match journal.exit() {
                _ if journal.is_closed() => ProcessState::Closed,
                Some(_) => ProcessState::Exited,
                None => ProcessState::Running,
            },
            exit: journal.exit(),
            next_seq: journal.next_seq(),
            bytes_out: journal.bytes_out(),
        }
    }

    /// Whether the child has not exited yet, according to the journal.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.log().journal.exit().is_none()
    }

    /// Appends the events after the cursor to `events`, up to about `budget` bytes of
    /// output. Returns whether there are more.
    pub fn events_after(&self, cursor: Seq, budget: usize, events: &mut Vec<Event>) -> bool {
        let log = self.log();
        let mut bytes = 0;
        for event in log.journal.events_after(cursor) {
            if let Event::Output(chunk) = &event {
                // The first chunk is always included, whatever its size.
                if bytes > 0 && bytes + chunk.bytes.len() > budget {
                    return true;
                }
                bytes += chunk.bytes.len();
            }
            events.push(event);
        }
        false
    }

    /// The maximum number of bytes of a page after this cursor.
    #[must_use]
    pub fn page_bytes(&self, after: Seq, max_bytes: Option<usize>) -> usize {
        self.log().journal.page_bytes(after, max_bytes)
    }

    /// The output after the cursor, and the state.
    #[must_use]
    pub fn page(&self, after: Seq, max_bytes: Option<usize>) -> Page {
        self.log().journal.page(after, max_bytes)
    }

    /// Whether a read after this cursor returns at once: there is output, an exit that it has
    /// not seen, or the `closed` event.
    #[must_use]
    pub fn has_unseen_for(&self, after: Seq) -> bool {
        self.log().journal.has_unseen_for(after)
    }

    /// Waits until a read after this cursor returns at once.
    pub async fn wait_unseen_for(&self, after: Seq) {
        let events_available = || self.has_unseen_for(after).then_some(());
        clock::wait_for(&self.shared.readers, events_available).await;
    }

    /// Writes to the standard input of the child.
    pub async fn write(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        self.shared.stdin.write(bytes, id, end).await
    }

    /// Signals the process group, unless the child has exited.
    pub fn signal(&self, signal: Signal) {
        if self.is_running()
            && let Err(error) = self.shared.control.signal(signal)
        {
            tracing::warn!(process = self.id(), %error, "cannot signal process");
        }
    }

    /// Resizes the terminal.
    pub fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        self.shared.control.resize(size)
    }

    /// A key that is unique among all processes.
    #[must_use]
    pub fn key(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// How much output may be read now.
    pub(crate) fn space(&self) -> ReadAllowance {
        self.log().space()
    }

    /// The peer whose memory the output takes.
    pub(crate) fn peer(&self) -> Peer {
        self.shared.output_share.peer
    }

    /// The history of the process: kept output that its owner has seen.
    pub(crate) fn history(&self) -> usize {
        let journal = &self.log().journal;
        let (unseen, _) = journal.ahead();
        (journal.retained_bytes() - unseen) as usize
    }

    /// Drops the oldest history beyond `bytes`.
    pub(crate) fn trim_history(&self, bytes: usize) {
        let mut log = self.log();
        let before = log.journal.retained_bytes();
        let (unseen, _) = log.journal.ahead();
        log.journal.trim(bytes + unseen as usize);
        self.shared.freed.add(before - log.journal.retained_bytes());
    }

    /// Appends events. Only the actor does.
    pub(crate) fn append(&self, event: impl FnOnce(&mut Journal)) {
        let mut log = self.log();
        event(&mut log.journal);
        let free = self.shared.output_share.free().max(MIN_BYTES);
        if log.journal.retained_bytes() > free as u64 {
            log.journal.trim(free);
        }
        let listener = log.listener.as_ref().and_then(Weak::upgrade);
        drop(log);
        self.shared.readers.notify_waiters();
        if let Some(listener) = listener {
            listener.events_available();
        }
    }

    pub(crate) fn log(&self) -> LogGuard<'_> {
        LogGuard::new(self.shared.log.lock(), &self.shared.output_share)
    }

    /// Sets the owner, which has received everything up to `cursor`, or continues at the
    /// last owner's cursor. Passes the cursor to `start` before the first notification. The
    /// caller notifies the listener about existing events.
    pub(crate) fn attach(
        &self,
        cursor: Option<Seq>,
        listener: &Arc<dyn EventListener>,
        start: impl FnOnce(Seq),
    ) {
        let mut log = self.log();
        let cursor = cursor.unwrap_or_else(|| log.journal.owner().cursor());
        log.journal.attach(cursor);
        log.listener = Some(Arc::downgrade(listener));
        start(log.journal.owner().cursor());
        drop(log);
        // An advanced cursor may open the window or complete the delivery.
        self.shared.space.notify_one();
        self.shared.delivered.notify_waiters();
    }

    /// Detaches the owner. With acked delivery its cursor is kept.
    pub(crate) fn detach(&self, delivery: Delivery) {
        let mut log = self.log();
        log.listener = None;
        if delivery == Delivery::Push {
            log.journal.detach();
        }
        drop(log);
        self.shared.space.notify_one();
        self.shared.delivered.notify_waiters();
    }

    /// Ends the pause of eviction that began when the owner resumed.
    pub fn resume_eviction(&self) {
        self.log().journal.release();
        self.shared.space.notify_one();
    }

    /// Reduces the retention of a closed process to `bytes`. Returns how many bytes it still retains;
    /// output that its owner has yet to receive does not count.
    pub(crate) fn limit_retention(&self, bytes: u64) -> u64 {
        let mut log = self.log();
        let journal = &mut log.journal;
        let before = journal.retained_bytes();
        journal.limit_retention(usize::try_from(bytes).unwrap_or(usize::MAX));
        let after = journal.retained_bytes();
        self.shared.freed.add(before - after);
        let (unseen, _) = journal.ahead();
        if unseen > 0 { after.min(bytes) } else { after }
    }

    /// Waits until the owner has received all events, `closed` included.
    pub(crate) async fn delivered(&self) {
        let delivered = || self.log().journal.is_delivered().then_some(());
        clock::wait_for(&self.shared.delivered, delivered).await;
    }

    /// Advances the owner's cursor.
    pub fn advance(&self, cursor: Seq) {
        let mut log = self.log();
        let was_full = !log.space().is_some();
        log.journal.advance(cursor);
        let space = was_full && log.space().is_some();
        let delivered = log.journal.is_delivered();
        drop(log);
        if space {
            self.shared.space.notify_one();
        }
        if delivered {
            self.shared.delivered.notify_waiters();
        }
    }

    /// Whether the exit code and the retained output indicate that the sandbox denied an
    /// operation.
    pub(crate) fn looks_denied(&self, code: i32) -> bool {
        if code == 0 {
            return false;
        }
        let chunks = self.page(Seq::START, None).chunks;
        let stream = |wanted: Stream| {
            let chunks = chunks.iter().filter(move |chunk| chunk.stream == wanted);
            chunks.map(|chunk| &chunk.bytes[..])
        };
        let streams = [Stream::Stdout, Stream::Stderr, Stream::Pty];
        outpost_sandbox::is_denied(code, streams.map(stream))
    }
}
