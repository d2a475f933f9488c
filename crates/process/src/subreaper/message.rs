//! Messages between the server and a subreaper, encoded with postcard.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::socket;
use crate::exit::ExitStatus;
use crate::program::Program;
use crate::sys::child_setup::Stage;

/// The maximum length of a [`ControlMessage`] or [`Report`].
const MAX_SHORT: usize = 64;

/// Identifies the format of a start request. A subreaper of another version rejects it.
const MAGIC: [u8; 4] = *b"OKR3";

/// The length of the header of a start request: the magic, and the length of the whole.
const HEADER: usize = 4 + 4;

/// A longer request is sent in several messages, because a message has to fit into the socket buffer.
/// Every subreaper allocates this much for its first message.
const CHUNK: usize = 16 * 1024;

/// More than `execve` accepts.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// From the server to a subreaper. The end of the socket means [`ControlMessage::Kill`] too.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// From a subreaper to the server: [`Report::Ready`], then one of the first two for each start request,
/// and [`Report::Exited`] after a successful one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    /// No child was created, or it failed before `execve`.
    Failed(Stage, i32),
    /// The leader is a zombie. `alone`: it left no descendants, which cannot change later.
    Exited {
        status: ExitStatus,
        alone: bool,
    },
    /// Sent once, before anything else: the subreaper's own pid.
    Ready {
        pid: i32,
    },
    /// The last message of a subreaper whose program left descendants: all of them are gone. If the
    /// socket ends without it, the subreaper was killed.
    TreeGone,
}

/// Sends a [`ControlMessage`] or [`Report`]. Never blocks and does not allocate.
pub(super) fn send(socket: impl AsFd, message: &impl Serialize) -> Result<(), Errno> {
    let mut buffer = [0; MAX_SHORT];
    let bytes = postcard::to_slice(message, &mut buffer).map_err(|_| Errno::MSGSIZE)?;
    socket::send(socket, bytes, &[])
}

/// Receives a [`ControlMessage`] or [`Report`] without blocking; `None` if it is malformed. Fails with
/// [`Errno::PIPE`] if the other end is closed.
pub(super) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    flags: RecvFlags,
) -> Result<Option<T>, Errno> {
    let mut buffer = [0; MAX_SHORT];
    match socket::receive(socket, &mut buffer, flags | RecvFlags::DONTWAIT)? {
        (0, _) => Err(Errno::PIPE),
        (length, _) => Ok(decode(&buffer[..length])),
    }
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

/// An encoded request to start a program.
#[derive(Debug)]
pub(crate) struct StartRequest(Vec<u8>);

impl StartRequest {
    /// Returns `None` if the strings are too long. Such a program could not be executed either.
    pub(crate) fn new(program: &Program) -> Option<Self> {
        let mut bytes = postcard::to_extend(program, vec![0; HEADER]).ok()?;
        let length = u32::try_from(bytes.len()).ok()?;
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..HEADER].copy_from_slice(&length.to_ne_bytes());
        (bytes.len() <= MAX_LENGTH).then_some(Self(bytes))
    }

    /// The messages to send, in order. The descriptors go with the first.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.0.chunks(CHUNK)
    }
}

/// A decoded request.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) program: Program,
    /// The descriptors of the program, from 0 on; at least three.
    pub(super) fds: Vec<OwnedFd>,
}

/// The request is malformed or incomplete.
#[derive(Debug)]
pub(super) struct MalformedRequest;

/// Waits for a request. Returns `None` if the server is gone.
pub(super) fn receive_request(
    from: BorrowedFd<'_>,
) -> Result<Option<ReceivedRequest>, MalformedRequest> {
    let mut bytes = vec![0; CHUNK];
    let flags = RecvFlags::empty();
    let (first, fds) = match socket::receive(from, &mut bytes, flags) {
        Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(None),
        Ok(message) => message,
        Err(_) => return Err(MalformedRequest),
    };
    bytes.truncate(first);
    let total = total_length(&bytes).ok_or(MalformedRequest)?;
    let mut filled = bytes.len();
    bytes.resize(total.max(filled), 0);
    while filled < total {
        match socket::receive(from, &mut bytes[filled..], flags) {
            Ok((0, _)) | Err(_) => return Ok(None),
            Ok((more, _)) => filled += more,
        }
    }
    let program: Program = decode(&bytes[HEADER..]).ok_or(MalformedRequest)?;
    if program.cwd.is_empty() || fds.len() < 3 {
        return Err(MalformedRequest);
    }
    Ok(Some(ReceivedRequest { program, fds }))
}

/// Parses the header of a request.
fn total_length(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
    let length = u32::from_ne_bytes(*length) as usize;
    (length <= MAX_LENGTH).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{Exit, Rusage};
    use crate::program::Strings;
    use crate::rlimits::Rlimits;
    use crate::sys::child_setup::SessionMode;

    /// Sends and receives a message.
    fn round_trip<T: Serialize + DeserializeOwned>(message: &T) -> Option<T> {
        let (ours, theirs) = socket::pair().expect("create a socket pair");
        send(&ours, message).expect("send to the socket");
        receive(&theirs, RecvFlags::empty()).expect("receive from the socket")
    }

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
            assert_eq!(round_trip(&message), Some(message));
        }
        let usage = Some(Rusage {
            user_us: u64::MAX,
            system_us: u64::MAX,
            max_rss_kib: u64::MAX,
        });
        let exited = |exit| Report::Exited {
            status: ExitStatus { exit, usage },
            alone: true,
        };
        for report in [
            Report::Started { pid: 70_000 },
            Report::Started { pid: i32::MAX },
            Report::Failed(Stage::Clone, 11),
            Report::Failed(Stage::Directory, i32::MIN),
            exited(Exit::Code(3)),
            exited(Exit::Code(i32::MIN)),
            exited(Exit::Signal(9)),
            exited(Exit::Lost),
            Report::Ready { pid: i32::MAX },
            Report::TreeGone,
        ] {
            assert_eq!(round_trip(&report), Some(report));
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        assert_eq!(decode::<ControlMessage>(&[0; 12]), None);
        assert_eq!(decode::<ControlMessage>(b"short"), None);
        assert_eq!(decode::<ControlMessage>(&[]), None);
        assert_eq!(decode::<Report>(&[9; 12]), None);
        let without_stage = [1, 7, 4];
        assert_eq!(decode::<Report>(&without_stage), None);
        let with_stage = [1, 6, 4];
        assert_eq!(decode(&with_stage), Some(Report::Failed(Stage::Clone, 2)));
    }

    fn strings(all: &[&[u8]]) -> Strings {
        let mut strings = Strings::default();
        for one in all {
            assert!(strings.push(&[one]).is_ok());
        }
        strings
    }

    /// Sends a request with this argument. Returns the decoded request and the number of messages.
    fn request_round_trip(argument: &[u8]) -> (ReceivedRequest, usize) {
        let program = Program {
            candidates: strings(&[b"/bin/x"]),
            argv: strings(&[b"x", argument]),
            env: strings(&[]),
            cwd: strings(&[b"/"]),
            session_mode: SessionMode::Terminal,
            ignore_signals: true,
            rlimits: Rlimits {
                open_files: Some((7, 8)),
                ..Rlimits::default()
            },
        };
        let request = StartRequest::new(&program).expect("it is short enough");
        let (ours, theirs) = socket::pair().expect("create a socket pair");
        let count = request.chunks().count();
        let receiver = std::thread::spawn(move || receive_request(theirs.as_fd()));
        let three = [ours.as_fd(); 3];
        for (index, chunk) in request.chunks().enumerate() {
            let descriptors: &[_] = if index == 0 { &three } else { &[] };
            while let Err(error) = socket::send(&ours, chunk, descriptors) {
                assert_eq!(error, Errno::AGAIN);
                std::thread::yield_now();
            }
        }
        let received = receiver.join().expect("the receiver does not panic");
        let received = received.expect("the request is well-formed");
        (received.expect("the request is complete"), count)
    }

    #[test]
    fn request_arrives_whole_in_any_number_of_chunks() {
        for (length, chunks) in [(0, 1), (1000, 1), (200_000, 13), (3_000_000, 184)] {
            let argument = vec![b'a'; length];
            let (received, count) = request_round_trip(&argument);
            assert_eq!(count, chunks);
            let argv: Vec<_> = received.program.argv.iter().collect();
            assert_eq!(argv, [b"x", &argument[..]]);
            assert_eq!(received.program.candidates.iter().count(), 1);
            assert_eq!(received.program.env.iter().count(), 0);
            assert_eq!(received.program.cwd.iter().next(), Some(&b"/"[..]));
            assert_eq!(received.program.session_mode, SessionMode::Terminal);
            assert!(received.program.ignore_signals);
            assert_eq!(received.program.rlimits.open_files, Some((7, 8)));
        }
    }

    #[test]
    fn malformed_request_is_rejected() {
        for bytes in [&b"hello"[..], &[0; HEADER], b"OKR3"] {
            let (ours, theirs) = socket::pair().expect("create a socket pair");
            socket::send(&ours, bytes, &[]).expect("send to the socket");
            assert!(receive_request(theirs.as_fd()).is_err(), "{bytes:?}");
        }
        let (ours, theirs) = socket::pair().expect("create a socket pair");
        drop(ours);
        assert!(matches!(receive_request(theirs.as_fd()), Ok(None)));
    }
}
