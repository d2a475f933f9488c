//! The request that makes a subreaper start one program.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::socket;
use crate::strings::Strings;
use crate::sys::child_setup::{Program, SessionMode};

/// Identifies the format. A subreaper of another version rejects the request.
const MAGIC: [u8; 4] = *b"OKR1";

/// The length of the header: magic, flags, limits on open files, four lengths.
const HEADER: usize = 4 + 4 + 16 + 16;

/// A longer request is sent in several messages, because a message has to fit into the socket buffer.
/// Every subreaper allocates this much for the first one.
const CHUNK: usize = 16 * 1024;

/// More than `execve` accepts.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// An encoded request.
#[derive(Debug)]
pub(crate) struct StartRequest {
    bytes: Vec<u8>,
}

/// A decoded request.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) session_mode: SessionMode,
    pub(super) open_files: Option<(u64, u64)>,
    pub(super) descriptors: [OwnedFd; 3],
    /// Whether the program starts with all signals ignored.
    pub(super) ignore_signals: bool,
    /// Passed as descriptors 3 and up.
    pub(super) passed: Vec<OwnedFd>,
    candidates: Strings,
    argv: Strings,
    env: Strings,
    cwd: Strings,
}

/// The request is malformed or incomplete.
#[derive(Debug)]
pub(super) struct MalformedRequest;

impl StartRequest {
    pub(crate) fn new(
        program: &Program<'_>,
        (session_mode, ignore_signals): (SessionMode, bool),
        open_files: Option<(u64, u64)>,
    ) -> Self {
        let all = [program.candidates, program.argv, program.env, program.cwd].map(Strings::bytes);
        let (soft, hard) = open_files.unwrap_or_default();
        let session_mode = match session_mode {
            SessionMode::Group => 0,
            SessionMode::Session => 1,
            SessionMode::Terminal => 2,
            SessionMode::PassedTerminal => 3,
        };
        let mut bytes =
            Vec::with_capacity(HEADER + all.iter().map(|part| part.len()).sum::<usize>());
        bytes.extend(MAGIC);
        bytes.extend([
            session_mode,
            open_files.is_some().into(),
            ignore_signals.into(),
            0,
        ]);
        bytes.extend(soft.to_ne_bytes());
        bytes.extend(hard.to_ne_bytes());
        for part in all {
            // A length that does not fit exceeds `MAX_LENGTH`, which the receiver checks.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            bytes.extend(length.to_ne_bytes());
        }
        for part in all {
            bytes.extend_from_slice(part);
        }
        Self { bytes }
    }

    /// Whether the request exceeds the maximum length. Such a program could not be executed either.
    pub(crate) fn is_too_long(&self) -> bool {
        self.bytes.len() > MAX_LENGTH
    }

    /// The messages to send, in order. The descriptors go with the first.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(CHUNK)
    }
}

/// Waits for a request. Returns `None` if the server is gone.
pub(super) fn receive(from: BorrowedFd<'_>) -> Result<Option<ReceivedRequest>, MalformedRequest> {
    let mut bytes = vec![0; CHUNK];
    let flags = RecvFlags::empty();
    let (first, descriptors) = match socket::receive(from, &mut bytes, flags) {
        Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(None),
        Ok(message) => message,
        Err(_) => return Err(MalformedRequest),
    };
    bytes.truncate(first);
    let header = Header::read(&bytes).ok_or(MalformedRequest)?;
    let total = header.total();
    let mut filled = bytes.len();
    bytes.resize(total.max(filled), 0);
    while filled < total {
        match socket::receive(from, &mut bytes[filled..], flags) {
            Ok((0, _)) | Err(_) => return Ok(None),
            Ok((more, _)) => filled += more,
        }
    }
    header
        .decode(&bytes, descriptors)
        .map(Some)
        .ok_or(MalformedRequest)
}

impl ReceivedRequest {
    pub(super) fn program(&self) -> Program<'_> {
        Program {
            candidates: &self.candidates,
            argv: &self.argv,
            env: &self.env,
            cwd: &self.cwd,
        }
    }
}

struct Header {
    session_mode: SessionMode,
    ignore_signals: bool,
    open_files: Option<(u64, u64)>,
    lengths: [usize; 4],
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let ([session_mode, has_limit, ignore_signals, _], rest) = rest.split_first_chunk()?;
        let (soft, rest) = rest.split_first_chunk()?;
        let (hard, rest) = rest.split_first_chunk()?;
        let lengths: &[u8; 16] = rest.first_chunk()?;
        let mut all = [0; 4];
        for (length, bytes) in all.iter_mut().zip(lengths.chunks_exact(4)) {
            *length = u32::from_ne_bytes(bytes.try_into().ok()?) as usize;
        }
        let header = Self {
            session_mode: match session_mode {
                0 => SessionMode::Group,
                1 => SessionMode::Session,
                2 => SessionMode::Terminal,
                3 => SessionMode::PassedTerminal,
                _ => return None,
            },
            ignore_signals: *ignore_signals != 0,
            open_files: (*has_limit != 0)
                .then(|| (u64::from_ne_bytes(*soft), u64::from_ne_bytes(*hard))),
            lengths: all,
        };
        (*magic == MAGIC && header.total() <= MAX_LENGTH).then_some(header)
    }

    fn total(&self) -> usize {
        HEADER + self.lengths.iter().sum::<usize>()
    }

    fn decode(self, bytes: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<ReceivedRequest> {
        let passed = descriptors.split_off(descriptors.len().min(3));
        let mut rest = bytes.get(HEADER..)?;
        let mut strings = self.lengths.map(|length| {
            let (part, after) = rest.split_at_checked(length)?;
            rest = after;
            Strings::from_bytes(part)
        });
        let [candidates, argv, env, cwd] = strings.each_mut().map(Option::take);
        Some(ReceivedRequest {
            session_mode: self.session_mode,
            open_files: self.open_files,
            ignore_signals: self.ignore_signals,
            descriptors: descriptors.try_into().ok()?,
            passed,
            candidates: candidates?,
            argv: argv?,
            env: env?,
            cwd: cwd.filter(|cwd| !cwd.bytes().is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn strings(all: &[&[u8]]) -> Strings {
        let mut strings = Strings::default();
        for one in all {
            assert!(strings.push(&[one]).is_ok());
        }
        strings
    }

    /// Sends a request with this argument. Returns the decoded request and the number of messages.
    fn round_trip(argument: &[u8]) -> (ReceivedRequest, usize) {
        let program = Program {
            candidates: &strings(&[b"/bin/x"]),
            argv: &strings(&[b"x", argument]),
            env: &strings(&[]),
            cwd: &strings(&[b"/"]),
        };
        let request = StartRequest::new(&program, (SessionMode::Terminal, true), Some((7, 8)));
        let (ours, theirs) = socket::pair().expect("create a socket pair");
        let count = request.chunks().count();
        let receiver = std::thread::spawn(move || receive(theirs.as_fd()));
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
            let (received, count) = round_trip(&argument);
            assert_eq!(count, chunks);
            let argv: Vec<_> = received.argv.iter().collect();
            assert_eq!(argv, [b"x", &argument[..]]);
            assert_eq!(received.candidates.iter().count(), 1);
            assert_eq!(received.env.iter().count(), 0);
            assert_eq!(received.cwd.iter().next(), Some(&b"/"[..]));
            assert_eq!(received.session_mode, SessionMode::Terminal);
            assert!(received.ignore_signals);
            assert_eq!(received.open_files, Some((7, 8)));
        }
    }

    #[test]
    fn malformed_request_is_rejected() {
        for bytes in [&b"hello"[..], &[0; HEADER], b"OKR1"] {
            let (ours, theirs) = socket::pair().expect("create a socket pair");
            socket::send(&ours, bytes, &[]).expect("send to the socket");
            assert!(receive(theirs.as_fd()).is_err(), "{bytes:?}");
        }
        let (ours, theirs) = socket::pair().expect("create a socket pair");
        drop(ours);
        assert!(matches!(receive(theirs.as_fd()), Ok(None)));
    }
}
