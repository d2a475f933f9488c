//! The connection as its session sees it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outpost_engine::{Epoch, Link, Process, Session};
use outpost_rpc::{Outbox, PeerActivity};
use tokio_util::sync::CancellationToken;

use crate::{
    Server,
    dialects::{exec::ExecEventEncoder, feed::Feeds},
};

/// Handle through which a session probes, replaces and feeds its connection.
pub(crate) struct ConnectionLink {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) read_counter: PeerActivity,
    /// The peer can be pinged; false on stdio.
    pub(crate) pingable: bool,
    /// Cancelled to drop the connection.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection took over the session, or when a probe failed.
    pub(crate) replaced: CancellationToken,
    /// `replaced` was cancelled by a failed probe. The session is free to be resumed.
    pub(crate) probe_failed: Arc<AtomicBool>,
    /// A probe is running.
    pub(crate) probing: Arc<AtomicBool>,
    /// The connection is not read while a request waits for admission.
    pub(crate) reads_paused: Arc<AtomicBool>,
}

impl Link for ConnectionLink {
    fn probe(&self) {
        if !self.pingable || self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let reads = self.read_counter.count();
        self.outbox.ping();
        let read_counter = self.read_counter.clone();
        let gone = self.gone.clone();
        let replaced = self.replaced.clone();
        let probe_failed = Arc::clone(&self.probe_failed);
        let probing = Arc::clone(&self.probing);
        let reads_paused = Arc::clone(&self.reads_paused);
        let timeout = self.server.settings().probe_timeout;
        self.server.tasks().spawn(async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                // Received bytes may have been sent before the link broke, so this proves
                // nothing for later: the next rejected resume probes again.
                () = read_counter.changed_from(reads) => {}
                () = tokio::time::sleep(timeout) => {
                    if reads_paused.load(Ordering::Acquire) {
                        // The pong may be there, unread.
                        probing.store(false, Ordering::Release);
                        return;
                    }
                    tracing::debug!(?timeout, "probe failed; dropping the connection");
                    // Treat the session as taken over, so that pending long polls return.
                    probe_failed.store(true, Ordering::Release);
                    replaced.cancel();
                }
            }
            probing.store(false, Ordering::Release);
        });
    }

    fn replaced(&self) {
        self.replaced.cancel();
    }

    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process) {
        let encoder = ExecEventEncoder::new(process);
        let owner = (session, epoch);
        self.feeds.open(&self.outbox, owner, process, None, encoder);
    }
}
