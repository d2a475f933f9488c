//! What was heard of one process.

use serde_json::Value;

use crate::unbase64;

/// One notification about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `process/output`
    Output {
        /// Its number.
        seq: u64,
        /// `stdout`, `stderr` or `pty`.
        stream: String,
        /// What was written.
        bytes: Vec<u8>,
    },
    /// `process/exited`
    Exited {
        /// Its number.
        seq: u64,
        /// How it ended.
        code: i64,
        /// Whether the sandbox was in its way.
        denied: bool,
    },
    /// `process/closed`
    Closed {
        /// Its number.
        seq: u64,
    },
}

impl Event {
    /// Reads a notification, unless it is about something else; says which process it is about.
    pub(crate) fn of(message: &Value) -> Option<(String, Event)> {
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
                    denied: denied.unwrap_or_else(|| panic!("{message} doesn't say")),
                }
            }
            "closed" => Event::Closed { seq },
            _ => return None,
        };
        Some((params["processId"].as_str()?.to_owned(), event))
    }

    /// Its number.
    pub fn seq(&self) -> u64 {
        match self {
            Event::Output { seq, .. } | Event::Exited { seq, .. } | Event::Closed { seq } => *seq,
        }
    }
}

/// The notifications about one process so far, in the order of the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// All of them.
    pub events: Vec<Event>,
}

impl Story {
    /// What was written to one stream.
    pub fn stream(&self, name: &str) -> Vec<u8> {
        let chunks = self.events.iter().filter_map(|event| match event {
            Event::Output { stream, bytes, .. } if stream == name => Some(&bytes[..]),
            _ => None,
        });
        chunks.collect::<Vec<_>>().concat()
    }

    /// What was written, in the order it was reported.
    pub fn output(&self) -> Vec<u8> {
        let chunks = self.events.iter().filter_map(|event| match event {
            Event::Output { bytes, .. } => Some(&bytes[..]),
            _ => None,
        });
        chunks.collect::<Vec<_>>().concat()
    }

    /// What was written, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output()).into_owned()
    }

    /// What was written to stdout, as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stream("stdout")).into_owned()
    }

    /// What was written to stderr, as text.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stream("stderr")).into_owned()
    }

    /// How many bytes were written.
    pub fn bytes(&self) -> usize {
        let lengths = self.events.iter().map(|event| match event {
            Event::Output { bytes, .. } => bytes.len(),
            _ => 0,
        });
        lengths.sum()
    }

    /// The number and the code of the exit, if it has come.
    pub fn exit(&self) -> Option<(u64, i64)> {
        self.events.iter().find_map(|event| match event {
            Event::Exited { seq, code, .. } => Some((*seq, *code)),
            _ => None,
        })
    }

    /// The exit code, which must have come.
    pub fn code(&self) -> i64 {
        let exit = self.exit();
        exit.unwrap_or_else(|| panic!("no exit in {:?}", self.events))
            .1
    }

    /// Whether the sandbox was in its way; it must have ended.
    pub fn denied(&self) -> bool {
        let denied = self.events.iter().find_map(|event| match event {
            Event::Exited { denied, .. } => Some(*denied),
            _ => None,
        });
        denied.unwrap_or_else(|| panic!("no exit in {:?}", self.events))
    }

    /// Whether the end has come.
    pub fn is_closed(&self) -> bool {
        self.events
            .iter()
            .any(|event| matches!(event, Event::Closed { .. }))
    }

    /// The kinds of events, without their numbers: `output`s, `exited` and `closed`.
    pub fn kinds(&self) -> Vec<&'static str> {
        let kind = |event: &Event| match event {
            Event::Output { .. } => "output",
            Event::Exited { .. } => "exited",
            Event::Closed { .. } => "closed",
        };
        self.events.iter().map(kind).collect()
    }

    /// Checks what holds for every process that is closed: numbers from 1 without holes, in order
    /// on the wire; one exit; `closed` once and last.
    pub fn check(&self) {
        let numbers: Vec<_> = self.events.iter().map(Event::seq).collect();
        let expected: Vec<_> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "the numbers of {:?}", self.kinds());
        let count = |kind| self.kinds().iter().filter(|other| **other == kind).count();
        assert_eq!(
            (count("exited"), count("closed")),
            (1, 1),
            "{:?}",
            self.kinds()
        );
        assert_eq!(self.kinds().last(), Some(&"closed"));
    }
}
