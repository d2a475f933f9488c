//! Everything received over a connection.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::{Event, EventLog};

/// How many of the last messages a failure prints.
const SHOWN: usize = 20;

/// How many characters of each message a failure prints.
const SHOWN_CHARS: usize = 300;

/// Takes the events of processes instead of [`Received`].
pub(crate) type EventSink = Box<dyn FnMut(&str, Event) + Send + Sync>;

/// Everything received so far.
#[derive(Default)]
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
    pub(super) sink: Option<EventSink>,
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

/// One thing received.
pub(super) enum Incoming {
    Message(Value),
    Pong(Vec<u8>),
    End(ConnectionEnd),
}

impl Incoming {
    pub(super) fn message(text: &[u8]) -> Self {
        let message = serde_json::from_slice(text);
        Incoming::Message(
            message.unwrap_or_else(|error| panic!("the server sent invalid JSON: {error}")),
        )
    }
}

impl Received {
    pub(super) fn add(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Message(message) => self.add_message(message),
            Incoming::Pong(payload) => self.pongs.push(payload),
            Incoming::End(end) => self.end = Some(end),
        }
    }

    fn add_message(&mut self, message: Value) {
        if let Some((process, event)) = Event::parse(&message) {
            if let Some(sink) = &mut self.sink {
                return sink(&process, event);
            }
            if let Event::Output { seq, bytes, .. } = &event
                && let Some(counted) = self.counted.get_mut(&process)
            {
                counted.bytes += bytes.len();
                counted.chunks += 1;
                return assert_eq!(*seq, counted.chunks, "sequence numbers of {process}");
            }
            self.event_logs
                .entry(process)
                .or_default()
                .events
                .push(event);
        } else if self.sink.is_some() {
            // The sink takes events only.
            let is_response = message.get("method").is_none();
            assert!(is_response, "unexpected notification {message}");
        }
        let message = Arc::new(message);
        if message.get("method").is_none() {
            let responses = self.responses.entry(message["id"].to_string());
            responses.or_default().push(Arc::clone(&message));
        }
        self.messages.push(message);
    }

    /// Prints the last messages of a failed test.
    #[expect(clippy::print_stderr, reason = "details of a failed test")]
    pub(super) fn print_last(&self) {
        let from = self.messages.len().saturating_sub(SHOWN);
        eprintln!("the last of {} messages:", self.messages.len());
        for message in &self.messages[from..] {
            let text: String = message.to_string().chars().take(SHOWN_CHARS).collect();
            eprintln!("  {text}");
        }
        eprintln!("  connection end: {:?}", self.end);
    }
}
