//! The handle on a process.

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
use outpost_protocol::{SignalName, Size, StreamName};
use tokio::{runtime::Handle as Runtime, sync::watch};

use super::{Events, OutputReader, Reins, Stdin, Terminate, inlet::Inlet};
use crate::{Error, Page, record::Record};

/// A process; clones name the same one.
///
/// When the last clone is dropped, with all streams and adapters made from it,
/// the process is terminated, unless somebody has called [`Process::detach`] or
/// it has exited.
///
/// Output isn't lost on the way to its reader: a process that is a window ahead
/// of the slowest one waits in `write`, as on any full pipe. That goes for the
/// reader that is still to come, too. So either read the output, or call
/// [`Process::wait`] without reading, which lets the oldest output go.
#[derive(Clone)]
pub struct Process {
    pub(super) handle: Arc<Handle>,
}

/// What the clones of a [`Process`] share.
pub(crate) struct Handle {
    pub(super) record: Arc<Record>,
    reins: Arc<dyn Reins>,
    detached: AtomicBool,
    /// Bytes reach the process in the order of the calls, also when some of them
    /// have to be repeated.
    pub(super) inlet: Inlet,
}

impl Handle {
    /// A handle whose input is written by a task of the given runtime.
    pub(crate) fn new(
        record: Arc<Record>,
        reins: Arc<dyn Reins>,
        detached: bool,
        runtime: Runtime,
    ) -> Arc<Self> {
        Arc::new(Handle {
            record,
            inlet: Inlet::new(Arc::clone(&reins), runtime),
            reins,
            detached: AtomicBool::new(detached),
        })
    }

    /// Whether the process goes on when nobody holds it any more.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Relaxed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let detached = self.is_detached();
        let running = self.record.exit().is_none() && !self.record.is_over();
        self.record.abandon();
        self.reins.let_go(running && !detached);
    }
}

impl Process {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Process { handle }
    }

    /// The name of the process in its session.
    #[must_use]
    pub fn id(&self) -> &str {
        self.handle.record.id()
    }

    /// Everything there is to hear of it, in order, from the oldest event that
    /// is retained: also for those who come late, and after the close. The
    /// stream ends behind the close or the failure.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events_after(0)
    }

    /// The same, behind a number.
    #[must_use]
    pub fn events_after(&self, seq: u64) -> Events {
        Events::new(self.clone(), Seq(seq))
    }

    /// What it writes to standard output or, on a terminal, to that.
    #[must_use]
    pub fn stdout(&self) -> OutputReader {
        OutputReader::new(self.events(), &[StreamName::Stdout, StreamName::Pty])
    }

    /// What it writes to standard error; nothing on a terminal.
    #[must_use]
    pub fn stderr(&self) -> OutputReader {
        OutputReader::new(self.events(), &[StreamName::Stderr])
    }

    /// Its input. Shutting the writer down ends the input.
    #[must_use]
    pub fn stdin(&self) -> Stdin {
        Stdin::new(self.clone())
    }

    /// Output behind `after_seq`, at least one chunk if there is one and then
    /// as much as fits `max_bytes`, with the state of the process. Waits up to
    /// `wait` if there is nothing to say.
    ///
    /// It is answered from what is retained here and costs no call. Who polls
    /// holds the process back too, as long as nobody subscribes: it waits once
    /// it is a window ahead of `after_seq`.
    ///
    /// Cancel-safe.
    pub async fn read(
        &self,
        after_seq: u64,
        max_bytes: Option<usize>,
        wait: Duration,
    ) -> Result<Page, Error> {
        let after = Seq(after_seq);
        let mut news = self.wake();
        let waiting = async {
            while !self.handle.record.has_news_for(after) && news.changed().await.is_ok() {}
        };
        if !wait.is_zero() && !self.handle.record.has_news_for(after) {
            let _ = tokio::time::timeout(wait, waiting).await;
        }
        Ok(self.handle.record.page(after, max_bytes))
    }

    /// Changes whenever something has happened; its value is the number of the
    /// last event. For those who poll.
    #[must_use]
    pub fn wake(&self) -> watch::Receiver<u64> {
        self.handle.record.wake()
    }

    /// Waits until it has exited.
    ///
    /// If nobody reads its output, and nobody has begun to poll it, this lets it
    /// run: only the newest output is retained then. Who has subscribed has to
    /// go on reading, or the process may wait for that for ever.
    ///
    /// Cancel-safe.
    pub async fn wait(&self) -> Result<Exit, Error> {
        let record = &self.handle.record;
        record.expect_nobody();
        let mut news = record.wake();
        loop {
            if let Some(exit) = record.exit() {
                return Ok(exit);
            }
            if let Some(failure) = record.failure() {
                return Err(failure);
            }
            if news.changed().await.is_err() {
                return Err(Error::UnknownProcess {
                    id: self.id().to_owned(),
                });
            }
        }
    }

    /// Queues bytes for its input; returns when all of them are accepted, in
    /// order. Where the connection is lost meanwhile, it is repeated in a way
    /// that never writes a byte twice.
    ///
    /// Not cancel-safe: of a call that was dropped, all or a part may be written
    /// all the same. It holds up nobody else.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> Result<(), Error> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Ok(());
        }
        self.handle.inlet.write(bytes, false).await
    }

    /// Ends its input behind what was written; on a terminal, types the
    /// end-of-file character. Beyond the released servers: `closeStdin`.
    pub async fn close_stdin(&self) -> Result<(), Error> {
        self.handle.inlet.write(Bytes::new(), true).await
    }

    /// Signals its whole group; one that has exited gets nothing. Released
    /// servers know the interrupt only, beyond them: `signals`.
    pub async fn signal(&self, signal: SignalName) -> Result<(), Error> {
        self.handle.reins.signal(signal).await
    }

    /// Gives its terminal another size. Beyond the released servers: `resize`.
    pub async fn resize(&self, rows: u16, cols: u16) -> Result<(), Error> {
        self.handle.reins.resize(Size { rows, cols }).await
    }

    /// Ends it with its whole tree, and says whether it was running. The exit
    /// and the close follow as events.
    pub async fn terminate(&self) -> Result<bool, Error> {
        self.terminate_with(Terminate::default()).await
    }

    /// The same, in another way.
    pub async fn terminate_with(&self, how: Terminate) -> Result<bool, Error> {
        self.handle.reins.terminate(how).await
    }

    /// From now on, it isn't terminated when its last handle is dropped.
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
