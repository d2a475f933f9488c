//! The events of one process, reassembled over several connections.

use std::collections::BTreeMap;
use std::fmt;

/// The result of a closed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: i64,
    /// The number of events that were evicted before they were read.
    pub gaps: u64,
}

/// Receives the output in order.
pub(super) type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// One received event.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    Output(Vec<u8>),
    Exited(i64),
    Closed,
}

/// Reassembles the events of one process.
pub(super) struct FollowedProcess {
    /// The last sequence number processed.
    pub(super) last: u64,
    /// The last sequence number acknowledged.
    pub(super) acked: u64,
    /// Events after a gap.
    pending: BTreeMap<u64, ProcessEvent>,
    sink: OutputSink,
    code: Option<i64>,
    closed: bool,
    gaps: u64,
}

impl fmt::Debug for FollowedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {} of {:?}, gaps {}",
            self.last,
            self.pending.keys().max(),
            self.gaps
        )
    }
}

impl FollowedProcess {
    pub(super) fn new(sink: OutputSink) -> Self {
        FollowedProcess {
            last: 0,
            acked: 0,
            pending: BTreeMap::new(),
            sink,
            code: None,
            closed: false,
            gaps: 0,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.closed.then(|| Outcome {
            code: self.code.expect("exited precedes closed"),
            gaps: self.gaps,
        })
    }

    /// Adds an event. Duplicates are dropped; events after a gap wait.
    pub(super) fn add(&mut self, seq: u64, event: ProcessEvent) {
        if seq > self.last {
            self.pending.insert(seq, event);
            self.process_pending();
        }
    }

    fn process_pending(&mut self) {
        while let Some(event) = self.pending.remove(&(self.last + 1)) {
            assert!(!self.closed, "event after closed");
            self.last += 1;
            match event {
                ProcessEvent::Output(bytes) => (self.sink)(&bytes),
                ProcessEvent::Exited(code) => self.code = Some(code),
                ProcessEvent::Closed => self.closed = true,
            }
        }
    }

    /// Handles a read that returned everything retained below `next`: each missing event is the
    /// exit, the close, or lost.
    pub(super) fn complete_until(&mut self, next: u64, code: Option<i64>, closed: bool) {
        while self.last + 1 < next {
            let seq = self.last + 1;
            if closed && seq + 1 == next {
                self.pending.insert(seq, ProcessEvent::Closed);
            } else if let Some(code) = code.filter(|_| self.code.is_none() && !self.is_pending(seq))
            {
                // The exit's position among lost events is unknown and irrelevant.
                self.pending.insert(seq, ProcessEvent::Exited(code));
            } else if !self.is_pending(seq) {
                self.gaps += 1;
                self.last = seq;
            }
            self.process_pending();
        }
    }

    fn is_pending(&self, seq: u64) -> bool {
        self.pending.contains_key(&seq)
    }

    /// Returns true if events wait after a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.pending.is_empty()
    }
}
