//! What a server and a keeper have to say to each other once a program is asked for.

use crate::exit::Exit;
use crate::sys::birth::Stage;

/// How long each message is.
pub(super) const LENGTH: usize = 12;

/// From the server to a keeper. The end of the socket is [`Order::Kill`] too.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Kill everything below you.
    Kill,
    /// The leader's number isn't needed any more.
    Reap,
    /// Send a signal to everything below you, or only to what is `beside` the leader's group.
    Signal { number: i32, beside: bool },
}

/// From a keeper to the server: one of the first three, and [`Report::Ended`] after a start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    /// There could be no process.
    Refused {
        errno: i32,
    },
    /// The process gave up before it was the program.
    GaveUp {
        stage: Stage,
        errno: i32,
    },
    /// The leader is a zombie. `alone` says that it has left nothing running, and so never will.
    Ended {
        exit: Exit,
        alone: bool,
    },
}

impl Order {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        match self {
            Order::Kill => encode(1, 0, 0),
            Order::Reap => encode(2, 0, 0),
            Order::Signal { number, beside } => encode(3, number, beside.into()),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(match decode(bytes)? {
            (1, ..) => Order::Kill,
            (2, ..) => Order::Reap,
            (3, number, beside) => Order::Signal {
                number,
                beside: beside != 0,
            },
            _ => return None,
        })
    }
}

impl Report {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        match self {
            Report::Started { pid } => encode(1, pid, 0),
            Report::Refused { errno } => encode(2, errno, 0),
            Report::GaveUp { stage, errno } => encode(3, errno, stage as i32),
            Report::Ended { exit, alone } => {
                let (kind, number) = match exit {
                    Exit::Code(code) => (4, code),
                    Exit::Signal(signal) => (5, signal),
                    Exit::Lost => (6, 0),
                };
                encode(kind, number, alone.into())
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, first, second) = decode(bytes)?;
        let ended = |exit| Report::Ended {
            exit,
            alone: second != 0,
        };
        Some(match kind {
            1 => Report::Started { pid: first },
            2 => Report::Refused { errno: first },
            3 => Report::GaveUp {
                stage: Stage::from_number(second)?,
                errno: first,
            },
            4 => ended(Exit::Code(first)),
            5 => ended(Exit::Signal(first)),
            6 => ended(Exit::Lost),
            _ => return None,
        })
    }
}

fn encode(kind: i32, first: i32, second: i32) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    for (place, number) in bytes.chunks_exact_mut(4).zip([kind, first, second]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<(i32, i32, i32)> {
    let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
    let number = |at: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
    Some((number(0), number(4), number(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        for order in [
            Order::Kill,
            Order::Reap,
            Order::Signal {
                number: 15,
                beside: true,
            },
        ] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        let ended = |exit| Report::Ended { exit, alone: true };
        for report in [
            Report::Started { pid: 70_000 },
            Report::Refused { errno: 11 },
            Report::GaveUp {
                stage: Stage::Directory,
                errno: 2,
            },
            ended(Exit::Code(3)),
            ended(Exit::Signal(9)),
            ended(Exit::Lost),
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(Order::decode(&[0; LENGTH]), None);
        assert_eq!(Order::decode(b"short"), None);
        assert_eq!(Report::decode(&[9; LENGTH]), None);
        let no_stage = encode(3, 2, 0);
        assert_eq!(Report::decode(&no_stage), None);
    }
}
