//! The notifications about one process.

use serde_json::Value;

use crate::unbase64;

/// One notification about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `process/output`
    Output {
        /// The sequence number.
        seq: u64,
        /// `stdout`, `stderr` or `pty`.
        stream: String,
        /// The output.
        bytes: Vec<u8>,
    },
    /// `process/exited`
    Exited {
        /// The sequence number.
        seq: u64,
        /// The exit code.
        code: i64,
        /// `sandboxDenied`.
        denied: bool,
    },
    /// `process/closed`
    Closed {
        /// The sequence number.
        seq: u64,
    },
}

impl Event {
    /// Parses a process notification. Returns the process id with the event.
    pub(crate) fn parse(message: &Value) -> Option<(String, Event)> {
        let method = message["method"].as_str()?.strip_prefix("process/")?;
        let params = &message["params"];
        let seq = params["seq"].as_u64()?;
        let event = match method {
            "output" => Event::Output {
                seq,
                stream: params["stream"].as_str()?.to_owned(),
                bytes: unbase64(&params["chunk"]),
            },
            "exited" => {
                let denied = params["sandboxDenied"].as_bool();
                Event::Exited {
                    seq,
                    code: params["exitCode"].as_i64()?,
                    denied: denied.unwrap_or_else(|| panic!("no sandboxDenied in {message}")),
                }
            }
            "closed" => Event::Closed { seq },
            _ => return None,
        };
        Some((params["processId"].as_str()?.to_owned(), event))
    }

    /// The sequence number.
    pub fn seq(&self) -> u64 {
        match self {
            Event::Output { seq, .. } | Event::Exited { seq, .. } | Event::Closed { seq } => *seq,
        }
    }
}

/// The events of one process so far, in wire order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLog {
    /// All events.
    pub events: Vec<Event>,
}

impl EventLog {
    /// The output of one stream.
    pub fn stream(&self, name: &str) -> Vec<u8> {
        self.output_of(|stream| stream == name)
    }

    /// The output of all streams, in order.
    pub fn output(&self) -> Vec<u8> {
        self.output_of(|_| true)
    }

    fn output_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<u8> {
        let chunks = self.events.iter().filter_map(|event| match event {
            Event::Output { stream, bytes, .. } if is_wanted(stream) => Some(&bytes[..]),
            _ => None,
        });
        chunks.collect::<Vec<_>>().concat()
    }

    /// The output of all streams, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output()).into_owned()
    }

    /// The output of stdout, as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stream("stdout")).into_owned()
    }

    /// The output of stderr, as text.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stream("stderr")).into_owned()
    }

    /// The number of output bytes.
    pub fn bytes(&self) -> usize {
        self.output().len()
    }

    /// The sequence number and code of the exit, if received.
    pub fn exit(&self) -> Option<(u64, i64)> {
        let (seq, code, _) = self.exited()?;
        Some((seq, code))
    }

    /// The exit code. Panics if there is none yet.
    pub fn code(&self) -> i64 {
        self.exited_already().1
    }

    /// `sandboxDenied` of the exit. Panics if there is none yet.
    pub fn denied(&self) -> bool {
        self.exited_already().2
    }

    fn exited(&self) -> Option<(u64, i64, bool)> {
        self.events.iter().find_map(|event| match event {
            Event::Exited { seq, code, denied } => Some((*seq, *code, *denied)),
            _ => None,
        })
    }

    fn exited_already(&self) -> (u64, i64, bool) {
        let exited = self.exited();
        exited.unwrap_or_else(|| panic!("no exit in {:?}", self.events))
    }

    /// Returns true after `closed`.
    pub fn is_closed(&self) -> bool {
        let is_close = |event: &Event| matches!(event, Event::Closed { .. });
        self.events.iter().any(is_close)
    }

    /// The kinds of the events: `output`, `exited`, `closed`.
    pub fn kinds(&self) -> Vec<&'static str> {
        let kind = |event: &Event| match event {
            Event::Output { .. } => "output",
            Event::Exited { .. } => "exited",
            Event::Closed { .. } => "closed",
        };
        self.events.iter().map(kind).collect()
    }

    /// Checks the invariants of a closed process: numbers from 1 without gaps, one exit, `closed`
    /// last.
    pub fn check(&self) {
        let numbers: Vec<_> = self.events.iter().map(Event::seq).collect();
        let expected: Vec<_> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "sequence numbers of {:?}", self.kinds());
        let kinds = self.kinds();
        let count = |kind| kinds.iter().filter(|other| **other == kind).count();
        assert_eq!((count("exited"), count("closed")), (1, 1), "{kinds:?}");
        assert_eq!(kinds.last(), Some(&"closed"));
    }
}
