//! A bounded queue of log lines with a writing thread of its own.
//!
//! A pipe or terminal that is not read blocks its writer. Only the writing thread ever waits for it;
//! lines that do not fit into the queue meanwhile are dropped and counted.

use std::{
    io::{self, Write},
    mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

/// Capacity that an empty buffer keeps.
const KEPT_CAPACITY: usize = 64 * 1024;

/// The queue. Writing to it never blocks and never fails.
#[derive(Debug)]
pub(crate) struct LogQueue {
    state: Mutex<State>,
    /// Signalled when the first line is queued. The writing thread waits for it.
    filled: Condvar,
    /// Signalled when all lines are written. Flushes wait for it.
    drained: Condvar,
    max_bytes: usize,
}

/// The queued lines, behind one lock.
#[derive(Debug, Default)]
struct State {
    /// Complete lines.
    lines: Vec<u8>,
    /// Lines that were dropped since the last report.
    dropped: u64,
    /// The thread is writing lines that it took from the queue.
    is_writing: bool,
}

impl LogQueue {
    /// Starts the writing thread. It passes whole lines to `write`, and the number of dropped lines
    /// to `report` as soon as there is space again.
    pub(crate) fn start(
        max_bytes: usize,
        write: impl FnMut(&[u8]) + Send + 'static,
        report: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let queue = Arc::new(LogQueue {
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Condvar::new(),
            max_bytes,
        });
        let writer = Arc::clone(&queue);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.write_lines(write, report))?;
        Ok(queue)
    }

    /// Queues a line, or drops it if the queue is full.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.lines.len() + line.len() > self.max_bytes {
            state.dropped += 1;
            return;
        }
        state.lines.extend_from_slice(line);
        drop(state);
        self.filled.notify_one();
    }

    /// Waits until all lines are written, at most for `timeout`. Returns whether they are.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while state.is_writing || !state.lines.is_empty() {
            if self.drained.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    fn write_lines(&self, mut write: impl FnMut(&[u8]), report: impl Fn(u64)) {
        let mut batch = Vec::new();
        loop {
            let dropped = self.next_batch(&mut batch);
            // The queue is empty here, so that the report fits and follows the lines it is about.
            if dropped > 0 {
                report(dropped);
            }
            write(&batch);
        }
    }

    /// Waits for lines and moves them to `batch`. Returns how many were dropped after them.
    fn next_batch(&self, batch: &mut Vec<u8>) -> u64 {
        batch.clear();
        batch.shrink_to(KEPT_CAPACITY);
        let mut state = self.state.lock();
        state.is_writing = false;
        while state.lines.is_empty() {
            self.drained.notify_all();
            self.filled.wait(&mut state);
        }
        mem::swap(&mut state.lines, batch);
        state.is_writing = true;
        mem::take(&mut state.dropped)
    }
}

/// Each write is one complete line.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// Far longer than any test takes.
    const LONG: Duration = Duration::from_secs(20);

    /// A queue of 8 bytes whose writes each wait until they are received.
    fn blocked_queue() -> (Arc<LogQueue>, Receiver<String>) {
        let (written, lines): (SyncSender<String>, _) = sync_channel(0);
        let (report, reports) = sync_channel(16);
        let write = move |bytes: &[u8]| {
            let _ = written.send(String::from_utf8_lossy(bytes).into_owned());
        };
        let report = move |dropped| {
            let _ = report.send(dropped);
        };
        let queue = LogQueue::start(8, write, report).expect("a thread");
        // Reports are queued as lines, as the server's are.
        let reporter = Arc::clone(&queue);
        thread::spawn(move || {
            for dropped in reports {
                reporter.push(format!("d{dropped}\n").as_bytes());
            }
        });
        (queue, lines)
    }

    fn next(lines: &Receiver<String>) -> String {
        lines.recv_timeout(LONG).expect("written lines")
    }

    fn wait_until_taken(queue: &LogQueue) {
        while !queue.state.lock().is_writing {
            thread::yield_now();
        }
    }

    #[test]
    fn full_queue_drops_and_counts_lines() {
        let (queue, lines) = blocked_queue();
        queue.push(b"one\n");
        wait_until_taken(&queue);
        for line in ["two\n", "thr\n", "fou\n", "fiv\n"] {
            queue.push(line.as_bytes());
        }
        assert_eq!(next(&lines), "one\n");
        assert_eq!(next(&lines), "two\nthr\n");
        assert_eq!(
            next(&lines),
            "d2\n",
            "the report follows the lines before the gap"
        );
        queue.push(b"six\n");
        assert_eq!(next(&lines), "six\n");
    }

    #[test]
    fn flush_waits_for_a_reader_but_not_forever() {
        let (queue, lines) = blocked_queue();
        assert!(queue.flush(LONG), "an empty queue is flushed");
        queue.push(b"one\n");
        assert!(!queue.flush(Duration::from_millis(1)));
        let reader = thread::spawn(move || next(&lines));
        assert!(queue.flush(LONG));
        assert_eq!(reader.join().expect("a line"), "one\n");
    }
}
