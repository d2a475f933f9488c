//! The events of one process, reassembled over several connections.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Event, unbase64};

/// The result of a closed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: i64,
    /// The number of events that were evicted before they were read.
    pub gaps: u64,
}

/// Receives the output in order.
type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// Reassembles the events of one process.
pub(super) struct FollowedProcess {
    /// The last sequence number processed.
    pub(super) last: u64,
    /// The last sequence number acknowledged.
    pub(super) acked: u64,
    /// Events after a gap.
    pending: BTreeMap<u64, Event>,
    sink: OutputSink,
    code: Option<i64>,
    closed: bool,
    gaps: u64,
}

impl FollowedProcess {
    pub(super) fn new(sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        FollowedProcess {
            last: 0,
            acked: 0,
            pending: BTreeMap::new(),
            sink: Box::new(sink),
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
    pub(super) fn add(&mut self, event: Event) {
        if event.seq() > self.last {
            self.pending.insert(event.seq(), event);
            self.process_pending();
        }
    }

    fn process_pending(&mut self) {
        while let Some(event) = self.pending.remove(&(self.last + 1)) {
            assert!(!self.closed, "event after closed");
            self.last += 1;
            match event {
                Event::Output { bytes, .. } => (self.sink)(&bytes),
                Event::Exited { code, .. } => self.code = Some(code),
                Event::Closed { .. } => self.closed = true,
            }
        }
    }

    /// Adds the result of a read: everything retained below `nextSeq`. Each missing event is the
    /// exit, `closed`, or lost.
    pub(super) fn add_page(&mut self, page: &Value) -> Option<()> {
        for chunk in page["chunks"].as_array()? {
            self.add(Event::Output {
                seq: chunk["seq"].as_u64()?,
                stream: String::new(),
                bytes: unbase64(&chunk["chunk"]),
            });
        }
        let next = page["nextSeq"].as_u64()?;
        while self.last + 1 < next {
            let seq = self.last + 1;
            if page["closed"] == true && seq + 1 == next {
                self.pending.insert(seq, Event::Closed { seq });
            } else if let (Some(code), None) = (page["exitCode"].as_i64(), self.code) {
                // The exit's position among lost events is unknown and irrelevant.
                let denied = false;
                self.pending
                    .insert(seq, Event::Exited { seq, code, denied });
            } else {
                self.gaps += 1;
                self.last = seq;
            }
            self.process_pending();
        }
        Some(())
    }

    /// Returns true if events wait after a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.pending.is_empty()
    }
}
