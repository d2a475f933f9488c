//! Fixed-size messages between the server and a subreaper, after the start request.

use crate::exit::Exit;
use crate::sys::child_setup::Stage;

/// The length of every message.
pub(super) const LENGTH: usize = 12;

/// From the server to a subreaper. The end of the socket means [`ControlMessage::Kill`] too.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
    /// Kill all descendants.
    Kill,
    /// The leader's pid is no longer needed.
    Reap,
    /// Send a signal to all descendants, or only to those outside the leader's process group.
    Signal {
        number: i32,
        outside_group_only: bool,
    },
}

/// From a subreaper to the server: one of the first three for a start request, and
/// [`Report::Exited`] after a successful one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    /// No process could be created.
    Failed {
        errno: i32,
    },
    /// The child failed before `execve`.
    SetupFailed {
        stage: Stage,
        errno: i32,
    },
    /// The leader is a zombie. `alone` says that it left no descendants, which cannot change later.
    Exited {
        exit: Exit,
        alone: bool,
    },
}

impl ControlMessage {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        match self {
            ControlMessage::Kill => encode(1, 0, 0),
            ControlMessage::Reap => encode(2, 0, 0),
            ControlMessage::Signal {
                number,
                outside_group_only,
            } => encode(3, number, outside_group_only.into()),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(match decode(bytes)? {
            (1, ..) => ControlMessage::Kill,
            (2, ..) => ControlMessage::Reap,
            (3, number, outside) => ControlMessage::Signal {
                number,
                outside_group_only: outside != 0,
            },
            _ => return None,
        })
    }
}

impl Report {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        match self {
            Report::Started { pid } => encode(1, pid, 0),
            Report::Failed { errno } => encode(2, errno, 0),
            Report::SetupFailed { stage, errno } => encode(3, errno, stage as i32),
            Report::Exited { exit, alone } => {
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
        let exited = |exit| Report::Exited {
            exit,
            alone: second != 0,
        };
        Some(match kind {
            1 => Report::Started { pid: first },
            2 => Report::Failed { errno: first },
            3 => Report::SetupFailed {
                stage: Stage::from_number(second)?,
                errno: first,
            },
            4 => exited(Exit::Code(first)),
            5 => exited(Exit::Signal(first)),
            6 => exited(Exit::Lost),
            _ => return None,
        })
    }
}

fn encode(kind: i32, first: i32, second: i32) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    for (field, number) in bytes.chunks_exact_mut(4).zip([kind, first, second]) {
        field.copy_from_slice(&number.to_ne_bytes());
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
    fn messages_round_trip() {
        for message in [
            ControlMessage::Kill,
            ControlMessage::Reap,
            ControlMessage::Signal {
                number: 15,
                outside_group_only: true,
            },
        ] {
            assert_eq!(ControlMessage::decode(&message.encode()), Some(message));
        }
        let exited = |exit| Report::Exited { exit, alone: true };
        for report in [
            Report::Started { pid: 70_000 },
            Report::Failed { errno: 11 },
            Report::SetupFailed {
                stage: Stage::Directory,
                errno: 2,
            },
            exited(Exit::Code(3)),
            exited(Exit::Signal(9)),
            exited(Exit::Lost),
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        assert_eq!(ControlMessage::decode(&[0; LENGTH]), None);
        assert_eq!(ControlMessage::decode(b"short"), None);
        assert_eq!(Report::decode(&[9; LENGTH]), None);
        let without_stage = encode(3, 2, 0);
        assert_eq!(Report::decode(&without_stage), None);
    }
}
