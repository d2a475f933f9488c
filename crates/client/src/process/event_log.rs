//! The event log of one process and its readers.
//!
//! The executor appends events: the forwarding task of a local executor, or the receiver of a remote
//! connection. Streams, polls and waits are cursors on the log. The log is bounded: it retains the
//! latest events and the events that the slowest reader has not read. When the unread bytes reach one
//! window, the log is full, and the executor stops reading or acknowledging.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

use outpost_journal::{self as journal, Exit, Journal, Limits, OutputEnd, Seq};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::handle::ProcessShared;
use crate::{Error, Event, Page};

/// Output bytes that a stream fetches at once.
const BATCH_BYTES: usize = 256 * 1024;

/// Exit of a process that was closed without one.
const UNKNOWN_EXIT: Exit = Exit {
    code: -1,
    sandbox_denied: false,
    ended_by: None,
    usage: None,
};

/// The event log of one process and its readers.
pub(crate) struct ProcessLog {
    id: String,
    limits: Limits,
    state: Mutex<LogState>,
    /// Number of the last event. Also marked as changed on failure.
    last: watch::Sender<u64>,
    /// Reports to the source of the events that a full log has space again. Must not block.
    space_available: Box<dyn Fn() + Send + Sync>,
    /// The state shared by the public handles, while there are any.
    handle: Mutex<Weak<ProcessShared>>,
}

/// The journal of a process and its readers, behind one lock.
struct LogState {
    journal: Journal,
    readers: Readers,
    failure: Option<Error>,
}

impl ProcessLog {
    pub(crate) fn new(
        id: String,
        limits: Limits,
        after: Seq,
        space_available: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let mut journal = Journal::starting_after(limits, after);
        journal.attach(after);
        ProcessLog {
            id,
            limits,
            state: Mutex::new(LogState {
                journal,
                readers: Readers::expecting_first(after),
                failure: None,
            }),
            last: watch::Sender::new(after.0),
            space_available: Box::new(space_available),
            handle: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the state shared by the public handles, if there are any.
    #[cfg(feature = "remote")]
    pub(crate) fn handle(&self) -> Option<Arc<ProcessShared>> {
        self.handle.lock().upgrade()
    }

    /// Returns the state shared by the public handles. Creates it if there are none.
    pub(super) fn get_or_create_handle(
        &self,
        create: impl FnOnce() -> Arc<ProcessShared>,
    ) -> Arc<ProcessShared> {
        let mut slot = self.handle.lock();
        slot.upgrade().unwrap_or_else(|| {
            let handle = create();
            *slot = Arc::downgrade(&handle);
            handle
        })
    }

    /// Whether no more events will be appended and no handle is left to read them.
    pub(crate) fn is_unused(&self) -> bool {
        self.is_ended() && self.handle.lock().strong_count() == 0
    }

    /// Restarts an empty log after another number. `exit` is set if the process had exited by
    /// then.
    pub(crate) fn restart_after(&self, after: Seq, exit: Option<Exit>) {
        let mut state = self.state.lock();
        state.journal = Journal::starting_after(self.limits, after);
        if let Some(exit) = exit {
            state.journal.had_exited(exit);
        }
        state.readers.advance_all(after);
        state.retain_for_readers();
        self.notify_readers(state);
    }

    /// Appends events, which are next in order, and returns whether there is space for more.
    /// Ignores events after a failure.
    pub(crate) fn append(&self, events: impl IntoIterator<Item = journal::Event>) -> bool {
        let mut state = self.state.lock();
        if state.failure.is_some() {
            return true;
        }
        let journal = &mut state.journal;
        for event in events {
            match event {
                // Some servers number empty chunks.
                journal::Event::Output(chunk) if chunk.bytes.is_empty() => journal.skip(),
                journal::Event::Output(chunk) => journal.output(chunk.stream, chunk.bytes),
                // Some servers repeat the exit.
                journal::Event::Exited { .. } if journal.exit().is_some() => journal.skip(),
                journal::Event::Exited { exit, .. } => journal.exited(exit),
                journal::Event::Closed { .. } => {
                    journal.had_exited(UNKNOWN_EXIT);
                    journal.close(OutputEnd::Whole);
                }
            }
        }
        let has_space = journal.has_space();
        self.notify_readers(state);
        has_space
    }

    /// Ends the log with an error, unless the process is closed.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.state.lock();
        if state.failure.is_none() && !state.journal.is_closed() {
            state.failure = Some(error);
            self.notify_readers(state);
        }
    }

    fn notify_readers(&self, mut state: MutexGuard<'_, LogState>) {
        let last = state.journal.next_seq().previous();
        let wakers = state.readers.take_wakers();
        drop(state);
        self.last.send_replace(last.0);
        for waker in wakers {
            waker.wake();
        }
    }

    pub(crate) fn has_space(&self) -> bool {
        self.state.lock().journal.has_space()
    }

    /// Whether unread events exceed `windows` times the window.
    #[cfg(feature = "remote")]
    pub(crate) fn exceeds_windows(&self, windows: usize) -> bool {
        let max_bytes = self.limits.window_bytes.saturating_mul(windows);
        let max_chunks = self.limits.retain_chunks.saturating_mul(windows);
        let (bytes, chunks) = self.state.lock().journal.ahead();
        bytes > max_bytes as u64 || chunks > max_chunks
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.state.lock().journal.exit()
    }

    /// Whether no more events will be appended.
    pub(crate) fn is_ended(&self) -> bool {
        let state = self.state.lock();
        state.journal.is_closed() || state.failure.is_some()
    }

    /// Returns the exit, or why it can't be known.
    pub(crate) fn outcome(&self) -> Option<Result<Exit, Error>> {
        let state = self.state.lock();
        let failure = || state.failure.clone().map(Err);
        state.journal.exit().map(Ok).or_else(failure)
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Returns output after a cursor and the state of the process.
    pub(crate) fn page(&self, after: Seq, max_bytes: Option<usize>) -> Page {
        self.update_readers(|state| {
            state.readers.polled(after);
            let found = state.journal.page(after, max_bytes);
            Page {
                chunks: found.chunks.into_iter().map(Into::into).collect(),
                next_seq: found.next_seq.0,
                exit: found.exit,
                closed: found.closed,
                failure: state.failure.as_ref().map(ToString::to_string),
            }
        })
    }

    /// Whether a poll at this cursor would return something new.
    pub(crate) fn has_unseen_for(&self, after: Seq) -> bool {
        let state = self.state.lock();
        state.failure.is_some() || state.journal.has_unseen_for(after)
    }

    pub(crate) fn add_reader(&self, after: Seq) -> u64 {
        self.update_readers(|state| state.readers.add(after))
    }

    pub(crate) fn remove_reader(&self, key: u64) {
        self.update_readers(|state| state.readers.remove(key));
    }

    /// Stops retaining output for a first reader that may never come.
    pub(crate) fn expect_no_reader(&self) {
        self.update_readers(|state| state.readers.expect_none());
    }

    /// Records that the last handle is gone, so no reader can come.
    pub(crate) fn handles_dropped(&self) {
        self.update_readers(|state| state.readers.remove(IMPLICIT));
    }

    /// Fetches the next events for a reader that has had everything up to `delivered`. An empty
    /// batch that is ready means the end.
    pub(crate) fn poll_events(
        &self,
        reader: u64,
        delivered: Seq,
        batch: &mut VecDeque<Event>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        self.update_readers(|state| {
            state.readers.advance(reader, delivered);
            state.fetch(delivered, batch);
            if !batch.is_empty() || state.is_complete(delivered) {
                return Poll::Ready(());
            }
            state.readers.register_waker(reader, cx.waker());
            Poll::Pending
        })
    }

    /// Changes the readers and notifies the source if that makes space.
    fn update_readers<R>(&self, update: impl FnOnce(&mut LogState) -> R) -> R {
        let mut state = self.state.lock();
        let had_space = state.journal.has_space();
        let result = update(&mut state);
        state.retain_for_readers();
        let gained_space = !had_space && state.journal.has_space();
        drop(state);
        if gained_space {
            (self.space_available)();
        }
        result
    }
}

impl LogState {
    /// Makes the journal retain what the slowest reader has not read.
    fn retain_for_readers(&mut self) {
        match self.readers.lowest() {
            None => self.journal.detach(),
            Some(lowest) => {
                let owner = self.journal.owner();
                if owner.is_attached() && owner.cursor() <= lowest {
                    self.journal.advance(lowest);
                } else {
                    self.journal.attach(lowest);
                }
            }
        }
    }

    fn fetch(&self, after: Seq, batch: &mut VecDeque<Event>) {
        let mut bytes = 0;
        for event in self.journal.events_after(after) {
            if let journal::Event::Output(chunk) = &event {
                bytes += chunk.bytes.len();
            }
            batch.push_back(event.into());
            if bytes >= BATCH_BYTES {
                return;
            }
        }
        if let Some(failure) = &self.failure {
            batch.push_back(Event::Failed {
                error: failure.clone(),
            });
        }
    }

    /// Whether a reader that has had everything up to `delivered` is at the end.
    fn is_complete(&self, delivered: Seq) -> bool {
        self.journal.is_closed() && !self.journal.has_after(delivered)
    }
}

/// The cursors on an event log. Events after the lowest cursor must be retained.
#[derive(Debug)]
struct Readers {
    /// Readers by key. [`IMPLICIT`] holds a cursor without having subscribed.
    readers: HashMap<u64, Reader>,
    /// Whether the implicit reader is a caller that polls. If not, it keeps output for the first
    /// subscriber.
    polling: bool,
    last_key: u64,
}

/// The key of the implicit reader.
const IMPLICIT: u64 = 0;

/// A reader's position, and the task to wake at the next event.
#[derive(Debug)]
struct Reader {
    cursor: Seq,
    waker: Option<Waker>,
}

impl Readers {
    fn expecting_first(cursor: Seq) -> Self {
        let waker = None;
        Readers {
            readers: HashMap::from([(IMPLICIT, Reader { cursor, waker })]),
            polling: false,
            last_key: IMPLICIT,
        }
    }

    /// Moves every cursor forward to at least `cursor`.
    fn advance_all(&mut self, cursor: Seq) {
        for reader in self.readers.values_mut() {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    /// Returns the lowest cursor, or `None` without any reader.
    fn lowest(&self) -> Option<Seq> {
        self.readers.values().map(|reader| reader.cursor).min()
    }

    /// Adds a subscriber, which replaces the implicit reader.
    fn add(&mut self, cursor: Seq) -> u64 {
        self.remove(IMPLICIT);
        self.last_key += 1;
        let waker = None;
        self.readers.insert(self.last_key, Reader { cursor, waker });
        self.last_key
    }

    fn remove(&mut self, key: u64) {
        self.readers.remove(&key);
    }

    fn advance(&mut self, key: u64, cursor: Seq) {
        if let Some(reader) = self.readers.get_mut(&key) {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    /// Wakes `waker` at the next event.
    fn register_waker(&mut self, key: u64, waker: &Waker) {
        if let Some(reader) = self.readers.get_mut(&key) {
            match &mut reader.waker {
                Some(known) => known.clone_from(waker),
                None => reader.waker = Some(waker.clone()),
            }
        }
    }

    /// Records that a poll has seen everything up to `cursor`.
    fn polled(&mut self, cursor: Seq) {
        self.polling = true;
        self.advance(IMPLICIT, cursor);
    }

    /// Stops retaining output for a first subscriber. A polling caller keeps its cursor.
    fn expect_none(&mut self) {
        if !self.polling {
            self.remove(IMPLICIT);
        }
    }

    fn take_wakers(&mut self) -> Vec<Waker> {
        let readers = self.readers.values_mut();
        readers.filter_map(|reader| reader.waker.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_retained_for_the_first_reader_only() {
        let mut readers = Readers::expecting_first(Seq(0));
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.polled(Seq(3));
        readers.polled(Seq(2));
        assert_eq!(readers.lowest(), Some(Seq(3)));
        let key = readers.add(Seq(1));
        assert_eq!(readers.lowest(), Some(Seq(1)));
        readers.remove(key);
        assert_eq!(readers.lowest(), None);
    }

    #[test]
    fn waiting_for_the_exit_keeps_a_polling_cursor() {
        let mut readers = Readers::expecting_first(Seq(0));
        readers.polled(Seq(0));
        readers.expect_none();
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.remove(IMPLICIT);
        assert_eq!(readers.lowest(), None);
        let mut readers = Readers::expecting_first(Seq(0));
        readers.expect_none();
        assert_eq!(readers.lowest(), None);
    }

    #[test]
    fn slowest_reader_sets_the_lowest_cursor() {
        let mut readers = Readers::expecting_first(Seq(0));
        let slow = readers.add(Seq(0));
        let fast = readers.add(Seq(0));
        readers.advance(fast, Seq(9));
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.advance(slow, Seq(4));
        readers.advance(slow, Seq(2));
        assert_eq!(readers.lowest(), Some(Seq(4)));
        readers.remove(slow);
        assert_eq!(readers.lowest(), Some(Seq(9)));
    }
}
