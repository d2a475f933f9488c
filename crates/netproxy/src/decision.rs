//! Decisions as events, and the counters of a proxy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use outpost_types::NetworkDecision;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// The number of decisions that are kept for a description of the process.
const MAX_RECORDS: usize = 256;

/// The sending end of the channel of decisions. The caller of [`Proxy::start`](crate::Proxy::start) holds the
/// other end. If the channel is full, a decision is dropped and counted.
pub type DecisionSender = mpsc::Sender<NetworkDecision>;

/// A decision, and the bytes of the connection that it allowed.
#[derive(Debug)]
pub struct Record {
    /// The decision.
    pub decision: NetworkDecision,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Record {
    /// Returns the number of bytes that the process has sent to the target.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that the process has received from the target.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// The decisions and the traffic of one proxy.
#[derive(Debug, Default)]
pub struct Activity {
    /// The last decisions, oldest first.
    records: Mutex<VecDeque<Arc<Record>>>,
    /// Changed while `records` is locked.
    decisions: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl Activity {
    /// Returns the last decisions, oldest first, and how many older ones are no longer kept.
    #[must_use]
    pub fn records(&self) -> (Vec<Arc<Record>>, u64) {
        let records = self.records.lock();
        let dropped = self.decisions() - records.len() as u64;
        (records.iter().cloned().collect(), dropped)
    }

    /// Returns the number of all decisions.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of all connections, in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of decisions that found the channel full.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts bytes to a target. Returns the number of all bytes.
    pub(crate) fn add_sent(&self, record: Option<&Record>, bytes: u64) -> u64 {
        if let Some(record) = record {
            record.sent.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Counts bytes from a target. Returns the number of all bytes.
    pub(crate) fn add_received(&self, record: Option<&Record>, bytes: u64) -> u64 {
        if let Some(record) = record {
            record.received.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }
}

/// Records decisions and sends them as events.
#[derive(Clone, Debug)]
pub(crate) struct DecisionLog {
    pub(crate) events: DecisionSender,
    pub(crate) activity: Arc<Activity>,
}

impl DecisionLog {
    pub(crate) fn add(&self, decision: NetworkDecision) -> Arc<Record> {
        tracing::debug!(
            decision = ?decision.decision,
            reason = decision.reason,
            protocol = %decision.protocol,
            host = decision.host,
            port = decision.port,
            "network decision"
        );
        if self.events.try_send(decision.clone()).is_err() {
            self.activity.dropped.fetch_add(1, Ordering::Relaxed);
        }
        let record = Arc::new(Record {
            decision,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let mut records = self.activity.records.lock();
        if records.len() == MAX_RECORDS {
            records.pop_front();
        }
        records.push_back(Arc::clone(&record));
        self.activity.decisions.fetch_add(1, Ordering::Relaxed);
        record
    }
}

/// Returns the present time as in RFC 3339, in milliseconds.
pub(crate) fn timestamp() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
