//! The public handle of a process, and the operations that each executor implements for it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use outpost_journal::{Exit, Seq};
use outpost_protocol::{Signal, Stream, TerminalSize};
use tokio::{runtime::Handle as Runtime, sync::watch};

use super::{Events, OutputReader, ProcessLog, Stdin, stdin::StdinQueue};
use crate::{Error, Page, Pending};

/// Controls one process.
pub(crate) trait ProcessBackend: Send + Sync {
    /// Queues bytes for standard input and, if `end` is set, closes it after them. The caller
    /// makes one call at a time.
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()>;

    fn signal(&self, signal: Signal) -> Pending<'_, ()>;

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()>;

    /// Terminates the process tree. Returns whether the process was running.
    fn terminate(&self, how: Terminate) -> Pending<'_, bool>;

    /// Handles the drop of the last handle. `terminate`: whether to terminate the process.
    /// Called from destructors: must not block.
    fn release(&self, terminate: bool);
}

/// Options for [`Process::terminate_with`](crate::Process::terminate_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminate {
    /// Time between the request to terminate and the kill. `None` uses the grace period given at
    /// the start of the process. A server must announce `terminateTree`.
    pub grace: Option<Duration>,
    /// Whether to kill leftover processes of the tree if the process has already exited. A server
    /// must announce `terminateTree`.
    pub tree: bool,
}

impl Terminate {
    /// Terminates with the process's own grace period.
    #[must_use]
    pub fn new() -> Self {
        Terminate::default()
    }

    /// Sets the time between the request to terminate and the kill.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Also kills leftover processes of the tree if the process has already exited.
    #[must_use]
    pub fn tree(mut self) -> Self {
        self.tree = true;
        self
    }
}

/// A handle of a process. Clones refer to the same process.
///
/// When the last clone and all streams created from it are dropped, the process is terminated,
/// unless it has exited or [`Process::detach`] was called.
///
/// # Backpressure
///
/// No output is lost on its way to a reader. A process that is one window ahead of its slowest
/// reader blocks in `write(2)`, as on any full pipe. This holds also before the first reader
/// subscribes. So either read the output, or call [`Process::wait`] without reading, which
/// discards the oldest output.
#[derive(Clone)]
pub struct Process {
    pub(super) handle: Arc<ProcessShared>,
}

/// State shared by the clones of a [`Process`].
pub(crate) struct ProcessShared {
    pub(super) log: Arc<ProcessLog>,
    backend: Arc<dyn ProcessBackend>,
    detached: AtomicBool,
    pub(super) stdin: StdinQueue,
}

impl ProcessShared {
    /// Whether the process survives the drop of its last handle.
    #[cfg(feature = "remote")]
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Relaxed)
    }
}

impl Drop for ProcessShared {
    fn drop(&mut self) {
        let detached = self.detached.load(Ordering::Relaxed);
        let running = self.log.exit().is_none() && !self.log.is_ended();
        self.log.handles_dropped();
        self.backend.release(running && !detached);
    }
}

impl Process {
    /// Returns a handle of the process with this log. Without other handles, creates one with
    /// `backend` that writes in a task of `runtime`.
    pub(crate) fn of(
        log: &Arc<ProcessLog>,
        detached: bool,
        runtime: Runtime,
        backend: impl FnOnce() -> Arc<dyn ProcessBackend>,
    ) -> Self {
        let handle = log.get_or_create_handle(|| {
            let backend = backend();
            Arc::new(ProcessShared {
                log: Arc::clone(log),
                stdin: StdinQueue::new(Arc::clone(&backend), runtime),
                backend,
                detached: AtomicBool::new(detached),
            })
        });
        Process { handle }
    }

    /// Returns the id of the process, unique in its session.
    #[must_use]
    pub fn id(&self) -> &str {
        self.handle.log.id()
    }

    /// Returns all events in order, from the oldest retained event on. Works also after the
    /// process has closed. The stream ends after [`Event::Closed`](crate::Event::Closed) or
    /// [`Event::Failed`](crate::Event::Failed).
    #[must_use]
    pub fn events(&self) -> Events {
        self.events_after(0)
    }

    /// Returns the events with numbers greater than `seq`.
    #[must_use]
    pub fn events_after(&self, seq: u64) -> Events {
        Events::new(self.clone(), Seq(seq))
    }

    /// Returns standard output, or the terminal's output if the process has a terminal.
    #[must_use]
    pub fn stdout(&self) -> OutputReader {
        OutputReader::new(self.events(), &[Stream::Stdout, Stream::Pty])
    }

    /// Returns standard error. Empty if the process has a terminal.
    #[must_use]
    pub fn stderr(&self) -> OutputReader {
        OutputReader::new(self.events(), &[Stream::Stderr])
    }

    /// Returns a writer for standard input. Shutting it down closes the input.
    #[must_use]
    pub fn stdin(&self) -> Stdin {
        Stdin::new(self.clone())
    }

    /// Polls for output after `after_seq`: at least one chunk if there is one, then as much as
    /// fits `max_bytes`, with the state of the process. Waits up to `wait` for something new.
    ///
    /// Reads the log in this program and makes no request. Polling also holds the process back
    /// while there is no subscriber: it blocks once it is one window ahead of `after_seq`.
    ///
    /// Cancel safe.
    pub async fn read(
        &self,
        after_seq: u64,
        max_bytes: Option<usize>,
        wait: Duration,
    ) -> Result<Page, Error> {
        let after = Seq(after_seq);
        let log = &self.handle.log;
        let mut changes = self.wake();
        let waiting =
            async { while !log.has_unseen_for(after) && changes.changed().await.is_ok() {} };
        if !wait.is_zero() && !log.has_unseen_for(after) {
            let _ = tokio::time::timeout(wait, waiting).await;
        }
        Ok(log.page(after, max_bytes))
    }

    /// Returns a receiver that changes with every event and holds the number of the last event.
    /// Useful with [`Process::read`].
    #[must_use]
    pub fn wake(&self) -> watch::Receiver<u64> {
        self.handle.log.subscribe()
    }

    /// Waits until the process has exited.
    ///
    /// Without a subscriber or a poll so far, only the newest output is retained from now on, so
    /// that the process can't block. With a subscriber, it must continue reading, or the process
    /// may block forever.
    ///
    /// Cancel safe.
    pub async fn wait(&self) -> Result<Exit, Error> {
        let log = &self.handle.log;
        log.expect_no_reader();
        let mut changes = log.subscribe();
        loop {
            if let Some(outcome) = log.outcome() {
                return outcome;
            }
            if changes.changed().await.is_err() {
                return Err(Error::UnknownProcess {
                    id: self.id().to_owned(),
                });
            }
        }
    }

    /// Writes bytes to standard input and waits until all are accepted. Concurrent calls write
    /// in the order of the calls. If the connection is lost, the write is repeated with an id, so
    /// that no byte is written twice.
    ///
    /// Not cancel safe: some or all bytes of a dropped call may still be written.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> Result<(), Error> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Ok(());
        }
        self.handle.stdin.write(bytes, false).await
    }

    /// Closes standard input after all earlier writes. On a terminal, types the end-of-file
    /// character. A server must announce `closeStdin`.
    pub async fn close_stdin(&self) -> Result<(), Error> {
        self.handle.stdin.write(Bytes::new(), true).await
    }

    /// Signals the process group. Does nothing if the process has exited. For signals other than
    /// [`Signal::Interrupt`], a server must announce `signals`.
    pub async fn signal(&self, signal: Signal) -> Result<(), Error> {
        self.handle.backend.signal(signal).await
    }

    /// Resizes the terminal. A server must announce `resize`.
    pub async fn resize(&self, rows: u16, cols: u16) -> Result<(), Error> {
        self.handle
            .backend
            .resize(TerminalSize { rows, cols })
            .await
    }

    /// Terminates the process tree and returns whether the process was running. The exit and the
    /// close follow as events.
    pub async fn terminate(&self) -> Result<bool, Error> {
        self.terminate_with(Terminate::default()).await
    }

    /// Terminates the process tree with options.
    pub async fn terminate_with(&self, how: Terminate) -> Result<bool, Error> {
        self.handle.backend.terminate(how).await
    }

    /// Keeps the process running when its last handle is dropped.
    pub fn detach(&self) {
        self.handle.detached.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
