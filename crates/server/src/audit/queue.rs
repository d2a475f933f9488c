//! The bounded queue of lines, and the loop of the thread that writes them.
//!
//! Recording never blocks. Only the thread waits for the file; after an error it tries again until the lines
//! are written. Lines that do not fit into the queue meanwhile are dropped and counted, in the server's log
//! and in the audit log.

use std::{
    io, mem,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Event, Subject, batch::Batch, sink::Sink};

/// Lines that wait to be written, in bytes. Those that are being written are as many at most.
const MAX_QUEUED_BYTES: usize = 1024 * 1024;
/// The time after which a failed write is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The number of failed writes in a row after which the error is logged again.
const FAILURES_PER_MESSAGE: u64 = 60;

/// The queue between the server and the thread.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Signalled when there is something to do. The thread waits for it.
    changed: Condvar,
    /// Signalled when all lines are written, and when a write has failed. Flushes wait for it.
    drained: Condvar,
}

/// The queued lines, behind one lock.
#[derive(Default)]
pub(super) struct State {
    /// Complete lines.
    lines: Vec<u8>,
    /// Lines that wait to be written, or are being written.
    pub(super) unwritten: u64,
    /// Lines that were dropped since the last line.
    pub(super) dropped: u64,
    /// Lines that were dropped since the server was started.
    all_dropped: u64,
    /// Writes that failed since the last one that succeeded.
    pub(super) failures: u64,
    /// The thread is writing lines that it took from the queue.
    pub(super) is_writing: bool,
    reopen: bool,
    ending: bool,
}

impl State {
    fn is_failing(&self) -> bool {
        self.failures > 0 || self.dropped > 0
    }

    pub(super) fn is_drained(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0 && !self.is_writing
    }
}

impl Queue {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether a line was dropped, or the last write failed.
    pub(super) fn is_failing(&self) -> bool {
        self.state().is_failing()
    }

    /// Has the thread open the file again.
    pub(super) fn reopen(&self) {
        self.state().reopen = true;
        self.changed.notify_all();
    }

    /// Has the thread end once all lines are written, or a write fails.
    pub(super) fn end(&self) {
        self.state().ending = true;
        self.changed.notify_all();
    }

    /// Waits until all lines are written, unless a write fails, at most for `timeout`. Returns the number of
    /// lines that are not written.
    pub(super) fn flush(&self, timeout: Duration) -> u64 {
        let deadline = Instant::now() + timeout;
        let mut state = self.state();
        while !state.is_drained() && state.failures == 0 {
            if self.drained.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.unwritten + state.dropped
    }

    /// Queues a line, or drops it if the queue is full.
    pub(super) fn push(&self, line: &[u8]) -> bool {
        let mut state = self.state.lock();
        // After a dropped line until the gap is recorded, so that it is in the right place.
        let is_full = state.dropped > 0 || state.lines.len() + line.len() > MAX_QUEUED_BYTES;
        if is_full {
            state.dropped += 1;
            state.all_dropped += 1;
            let (is_first, dropped) = (state.dropped == 1, state.all_dropped);
            drop(state);
            if is_first {
                tracing::error!(
                    dropped,
                    "audit log is not written fast enough; its lines are dropped"
                );
            }
            return false;
        }
        state.lines.extend_from_slice(line);
        state.unwritten += 1;
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Writes lines until the log ends.
    pub(super) fn write_lines(&self, mut sink: Sink) {
        let mut batch = Batch::default();
        loop {
            if !self.next_batch(&mut batch, &mut sink) {
                return;
            }
            while let Some(rest) = batch.rest() {
                match sink.write(rest) {
                    Ok(written) => {
                        let lines = batch.advance(written);
                        self.record_success(lines);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        if !self.wait_after_failure(&error, &mut batch, &mut sink) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits for lines, and moves them to the batch. Returns false if there are none and the log ends.
    fn next_batch(&self, batch: &mut Batch, sink: &mut Sink) -> bool {
        batch.clear();
        let mut state = self.state.lock();
        state.is_writing = false;
        loop {
            self.reopen_if_asked(&mut state, batch, sink);
            if !state.is_drained() {
                break;
            }
            self.drained.notify_all();
            if state.ending {
                return false;
            }
            self.changed.wait(&mut state);
        }
        mem::swap(&mut state.lines, &mut batch.lines);
        let lines = mem::take(&mut state.dropped);
        state.is_writing = true;
        state.unwritten += u64::from(lines > 0);
        drop(state);
        if lines > 0 {
            let gap = Event::Lost { lines };
            let gap = gap.line(Subject::default(), SystemTime::now());
            batch.lines.extend_from_slice(&gap);
        }
        true
    }

    /// Counts lines that were written.
    fn record_success(&self, lines: u64) {
        let mut state = self.state.lock();
        state.unwritten = state.unwritten.saturating_sub(lines);
        let failures = mem::take(&mut state.failures);
        let dropped = state.all_dropped;
        drop(state);
        if failures > 0 {
            tracing::warn!(failures, dropped, "audit log can be written again");
        }
    }

    /// Logs a failure, and waits before the next try. Returns false if the log ends.
    fn wait_after_failure(&self, error: &io::Error, batch: &mut Batch, sink: &mut Sink) -> bool {
        let mut state = self.state.lock();
        state.failures += 1;
        let (failures, dropped) = (state.failures, state.all_dropped);
        self.drained.notify_all();
        if failures % FAILURES_PER_MESSAGE == 1 {
            let file = sink.name();
            MutexGuard::unlocked(&mut state, || {
                tracing::error!(%error, file, failures, dropped, "cannot write the audit log; trying again");
            });
        }
        let deadline = Instant::now() + RETRY_AFTER;
        while !state.reopen && !state.ending {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return true;
            }
        }
        self.reopen_if_asked(&mut state, batch, sink);
        !state.ending
    }

    fn reopen_if_asked(
        &self,
        state: &mut MutexGuard<'_, State>,
        batch: &mut Batch,
        sink: &mut Sink,
    ) {
        while mem::take(&mut state.reopen) {
            MutexGuard::unlocked(state, || match sink.reopen() {
                Ok(()) => {
                    batch.begin_line_again();
                    tracing::info!(file = sink.name(), "audit log opened again");
                }
                Err(error) => {
                    let file = sink.name();
                    tracing::error!(%error, file, "cannot open the audit log again; keeping the open file");
                }
            });
        }
    }
}
