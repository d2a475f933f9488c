//! The handle on the audit log. If the log is required, new work is refused from the first failed write or
//! dropped line on, until a write succeeds.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use outpost_engine::NotRecorded;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{Event, event::Text, queue::Queue, sink::Sink};

/// The audit log of a server.
pub struct AuditLog {
    queue: Arc<Queue>,
    is_required: bool,
    is_file: bool,
    /// Tells the connections of this server from those of an earlier one in the same file.
    server: String,
    /// The number of connections so far.
    connections: AtomicU64,
}

/// The subject of an event. Absent members are not known, or make no difference.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'a> {
    pub(crate) principal: Option<&'a str>,
    pub(crate) connection: Option<&'a str>,
    pub(crate) address: Option<&'a str>,
    /// The beginning of the session id. The whole id would grant access to the session.
    pub(crate) session: Option<&'a str>,
    pub(crate) process: Option<&'a str>,
}

impl AuditLog {
    /// Opens a file, which is created with mode 0600, and starts the thread that appends to it. If the log
    /// `is_required`, new work is refused while it cannot be written.
    pub fn to_file(path: &Path, is_required: bool) -> io::Result<Self> {
        Self::start(Sink::open(path)?, is_required)
    }

    /// Starts the thread that writes to `writer`, which need not be buffered.
    pub fn to_writer(writer: Box<dyn Write + Send>, is_required: bool) -> io::Result<Self> {
        Self::start(Sink::Writer(writer), is_required)
    }

    fn start(sink: Sink, is_required: bool) -> io::Result<Self> {
        let mut random = [0; 4];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| io::Error::other("no random numbers"))?;
        let is_file = matches!(sink, Sink::File(..));
        let queue = Arc::new(Queue::default());
        let writer = Arc::clone(&queue);
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.write_lines(sink))?;
        Ok(AuditLog {
            queue,
            is_required,
            is_file,
            server: format!("{:08x}", u32::from_be_bytes(random)),
            connections: AtomicU64::new(0),
        })
    }

    /// Whether there is a file to be opened again.
    pub(crate) fn is_file(&self) -> bool {
        self.is_file
    }

    /// Returns a name for a connection, which no other one has.
    pub(super) fn connection_name(&self) -> String {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", self.server)
    }

    /// Records an event. Never blocks. Fails if the log is required and cannot be written; work that has not
    /// begun must then be refused.
    pub(crate) fn record(
        &self,
        subject: Subject<'_>,
        event: &Event<'_>,
    ) -> Result<(), NotRecorded> {
        let line = event.line(subject, SystemTime::now());
        let is_queued = self.queue.push(&line);
        match self.is_required && !is_queued {
            true => Err(NotRecorded),
            false => Ok(()),
        }
    }

    /// Records that a client was refused before it had a principal, as were others of its address: `count` in all.
    pub(crate) fn record_refusal(&self, address: &str, reason: Cow<'_, str>, count: u64) {
        let subject = Subject {
            address: Some(address),
            ..Subject::default()
        };
        let event = Event::AuthFailed {
            reason: Text::new(reason),
            count: Some(count).filter(|count| *count > 1),
        };
        let _ = self.record(subject, &event);
    }

    /// Checks that new work may begin.
    pub(crate) fn check(&self) -> Result<(), NotRecorded> {
        match self.is_required && self.queue.is_failing() {
            true => Err(NotRecorded),
            false => Ok(()),
        }
    }

    /// Opens the file again, because it was renamed. If that fails, the former one stays in use.
    pub(crate) fn reopen(&self) {
        self.queue.reopen();
    }

    /// Waits until all lines are written, unless a write fails, at most for `timeout`. Returns the number of
    /// lines that are not written. Blocks.
    pub(crate) fn flush(&self, timeout: Duration) -> u64 {
        self.queue.flush(timeout)
    }
}

impl Drop for AuditLog {
    /// Ends the thread once it has written all lines, or fails to.
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("is_required", &self.is_required)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use std::time::Instant;

    use super::{super::queue::State, *};

    /// Far longer than any test takes.
    const LONG: Duration = Duration::from_secs(20);

    /// A writer whose results are those that a test sends.
    struct Scripted {
        results: Receiver<io::Result<()>>,
        written: SyncSender<String>,
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.results.recv().map_err(io::Error::other)??;
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.written.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Ends = (AuditLog, SyncSender<io::Result<()>>, Receiver<String>);

    fn scripted(is_required: bool) -> Ends {
        let (result, results) = sync_channel(16);
        let (written, lines) = sync_channel(16);
        let writer = Scripted { results, written };
        let log = AuditLog::to_writer(Box::new(writer), is_required).expect("a thread");
        (log, result, lines)
    }

    fn record(log: &AuditLog) -> Result<(), NotRecorded> {
        log.record(Subject::default(), &Event::Connect {})
    }

    fn wait_until(log: &AuditLog, is_so: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + LONG;
        while !is_so(&log.queue.state()) {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
    }

    #[test]
    fn failed_lines_are_written_later_and_work_is_refused_meanwhile() {
        let (log, result, lines) = scripted(true);
        assert_eq!((log.check(), record(&log)), (Ok(()), Ok(())));
        let full = || Err(io::ErrorKind::StorageFull.into());
        result.send(full()).expect("a writer");
        wait_until(&log, |state| state.failures == 1);
        assert_eq!(log.check(), Err(NotRecorded));
        assert_eq!(log.flush(LONG), 1, "a failed write ends the wait");
        record(&log).expect("it is queued");
        result.send(Ok(())).expect("a writer");
        // Wakes the thread at once.
        log.reopen();
        let first = lines.recv_timeout(LONG).expect("a line");
        assert!(first.contains("\"event\":\"connect\""), "{first}");
        wait_until(&log, |state| state.failures == 0);
        assert_eq!(log.check(), Ok(()));
        result.send(Ok(())).expect("a writer");
        assert_eq!(lines.recv_timeout(LONG).expect("a line").lines().count(), 1);
    }

    #[test]
    fn full_queue_drops_lines_and_records_the_gap() {
        let (log, result, lines) = scripted(true);
        record(&log).expect("it is queued");
        wait_until(&log, |state| state.is_writing);
        let mut queued = 0;
        while record(&log).is_ok() {
            queued += 1;
        }
        assert_eq!(record(&log), Err(NotRecorded));
        assert_eq!(log.check(), Err(NotRecorded));
        for _ in 0..2 {
            result.send(Ok(())).expect("a writer");
        }
        assert_eq!(lines.recv_timeout(LONG).expect("a line").lines().count(), 1);
        let rest = lines.recv_timeout(LONG).expect("lines");
        assert_eq!(rest.lines().count(), queued + 1);
        let gap: serde_json::Value =
            serde_json::from_str(rest.lines().last().expect("a line")).expect("JSON");
        assert_eq!((&gap["event"], &gap["lines"]), (&"lost".into(), &2.into()));
        wait_until(&log, State::is_drained);
        assert_eq!(log.check(), Ok(()));
    }

    #[test]
    fn flush_waits_for_the_lines_after_a_gap_and_counts_those_that_are_lost() {
        let (log, result, lines) = scripted(false);
        record(&log).expect("it is queued");
        wait_until(&log, |state| state.is_writing);
        while log.queue.state().dropped == 0 {
            record(&log).expect("the log is not required");
        }
        let queued = log.queue.state().unwritten;
        assert_eq!(log.flush(Duration::ZERO), queued + 1);
        let flushing = thread::scope(|scope| {
            let flushing = scope.spawn(|| log.flush(LONG));
            for _ in 0..2 {
                result.send(Ok(())).expect("a writer");
                lines.recv_timeout(LONG).expect("lines");
            }
            flushing.join().expect("no panic")
        });
        assert_eq!(flushing, 0);
    }

    #[test]
    fn log_that_is_not_required_never_fails() {
        let (log, _results, _lines) = scripted(false);
        while log.queue.state().dropped == 0 {
            assert_eq!(record(&log), Ok(()));
        }
        assert_eq!(log.check(), Ok(()));
    }

    #[test]
    fn file_is_private_appended_to_and_no_link() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("audit.log");
        for lines in 1..3 {
            let log = AuditLog::to_file(&path, true).expect("a file");
            record(&log).expect("it is queued");
            assert_eq!(log.flush(LONG), 0);
            let text = std::fs::read_to_string(&path).expect("a file");
            assert_eq!(text.lines().count(), lines);
        }
        let mode = std::fs::metadata(&path).expect("a file").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(AuditLog::to_file(&link, false).is_err());
        assert!(AuditLog::to_file(dir.path(), false).is_err());
    }
}
