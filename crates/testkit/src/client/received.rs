//! Everything received over a connection.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::deadline::DEADLINE;
use crate::{Event, EventLog};

/// How many of the last messages a failure prints.
const SHOWN: usize = 20;

/// How many characters of each message a failure prints.
const SHOWN_CHARS: usize = 300;

/// Filled by the reading task, inspected by the test.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    received: Mutex<Received>,
    changed: Notify,
}

/// Everything received so far.
#[derive(Debug, Default)]
pub struct Received {
    /// All messages, in order.
    pub messages: Vec<Arc<Value>>,
    /// Responses and errors, by the JSON of their id.
    pub responses: HashMap<String, Vec<Arc<Value>>>,
    /// Notifications about processes.
    pub event_logs: HashMap<String, EventLog>,
    /// Processes whose output is counted instead of kept.
    pub counted: HashMap<String, OutputCount>,
    /// The payloads of pongs.
    pub pongs: Vec<Vec<u8>>,
    /// How the connection ended, if it did.
    pub end: Option<ConnectionEnd>,
}

/// The amount of output of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputCount {
    /// Bytes.
    pub bytes: usize,
    /// Chunks.
    pub chunks: u64,
}

/// How the peer ended a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// With a close frame with this code.
    Code(u16),
    /// Without a close frame.
    Abrupt,
}

impl Inbox {
    pub(super) fn message(&self, text: &[u8]) {
        let message: Value = serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("the server sent invalid JSON: {error}"));
        let message = Arc::new(message);
        let mut received = self.received.lock();
        if let Some((process, event)) = Event::parse(&message) {
            if let Event::Output { seq, bytes, .. } = &event
                && let Some(counted) = received.counted.get_mut(&process)
            {
                counted.bytes += bytes.len();
                counted.chunks += 1;
                assert_eq!(*seq, counted.chunks, "sequence numbers of {process}");
                drop(received);
                return self.changed.notify_waiters();
            }
            received
                .event_logs
                .entry(process)
                .or_default()
                .events
                .push(event);
        }
        if message.get("method").is_none() {
            let id = message["id"].to_string();
            let responses = received.responses.entry(id).or_default();
            responses.push(Arc::clone(&message));
        }
        received.messages.push(message);
        drop(received);
        self.changed.notify_waiters();
    }

    pub(super) fn only_count(&self, process: &str) {
        let counted = OutputCount::default();
        self.received
            .lock()
            .counted
            .insert(process.to_owned(), counted);
    }

    pub(super) fn pong(&self, payload: Vec<u8>) {
        self.received.lock().pongs.push(payload);
        self.changed.notify_waiters();
    }

    pub(super) fn end(&self, end: ConnectionEnd) {
        self.received.lock().end.get_or_insert(end);
        self.changed.notify_waiters();
    }

    pub(super) fn inspect<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock())
    }

    /// Waits until `look` finds something. Panics at the deadline or at the end of the connection.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&Received) -> Option<T>,
    ) -> T {
        let search = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                {
                    let received = self.received.lock();
                    if let Some(found) = look(&received) {
                        return found;
                    }
                    if let Some(end) = &received.end {
                        panic!("the connection ended ({end:?}) before {what}");
                    }
                }
                changed.await;
            }
        };
        match tokio::time::timeout(DEADLINE, search).await {
            Ok(found) => found,
            Err(_) => panic!("timed out waiting for {what}"),
        }
    }

    /// Prints the last messages of a failed test.
    #[expect(clippy::print_stderr, reason = "details of a failed test")]
    pub(super) fn print_last(&self) {
        let received = self.received.lock();
        let from = received.messages.len().saturating_sub(SHOWN);
        eprintln!("the last of {} messages:", received.messages.len());
        for message in &received.messages[from..] {
            let text: String = message.to_string().chars().take(SHOWN_CHARS).collect();
            eprintln!("  {text}");
        }
        eprintln!("  connection end: {:?}", received.end);
    }
}
