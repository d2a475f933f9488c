//! Everything a keeper needs to start one program.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::socket;
use crate::strings::Strings;
use crate::sys::birth::{Program, Standing};

/// Says that it is a request, and of which form. A keeper of another version refuses it.
const MAGIC: [u8; 4] = *b"OKR1";

/// In front of the strings: the form, the standing, the limit on open files, four lengths.
const HEADER: usize = 4 + 4 + 16 + 16;

/// A request longer than this comes in several messages, since one has to fit into the socket. Every
/// keeper has touched that much memory for the first one.
const PIECE: usize = 16 * 1024;

/// More than the system would pass to any program.
const LONGEST: usize = 64 * 1024 * 1024;

/// One program, laid out for its keeper.
#[derive(Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

/// The same on the other side.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) standing: Standing,
    pub(super) open_files: Option<(u64, u64)>,
    pub(super) descriptors: [OwnedFd; 3],
    /// Whether it ignores signals.
    pub(super) is_deaf: bool,
    /// What is to become 3 and so on.
    pub(super) passed: Vec<OwnedFd>,
    candidates: Strings,
    argv: Strings,
    env: Strings,
    cwd: Strings,
}

/// It can't be understood, or was cut off.
#[derive(Debug)]
pub(super) struct Unreadable;

impl Request {
    pub(crate) fn new(
        program: &Program<'_>,
        (standing, is_deaf): (Standing, bool),
        open_files: Option<(u64, u64)>,
    ) -> Self {
        let all = [program.candidates, program.argv, program.env, program.cwd].map(Strings::bytes);
        let (soft, hard) = open_files.unwrap_or_default();
        let standing = match standing {
            Standing::Group => 0,
            Standing::Session => 1,
            Standing::Terminal => 2,
            Standing::TerminalBehind => 3,
        };
        let mut bytes =
            Vec::with_capacity(HEADER + all.iter().map(|part| part.len()).sum::<usize>());
        bytes.extend(MAGIC);
        bytes.extend([standing, open_files.is_some().into(), is_deaf.into(), 0]);
        bytes.extend(soft.to_ne_bytes());
        bytes.extend(hard.to_ne_bytes());
        for part in all {
            // What doesn't fit is over the longest by far, and refused there.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            bytes.extend(length.to_ne_bytes());
        }
        for part in all {
            bytes.extend_from_slice(part);
        }
        Self { bytes }
    }

    /// Whether any keeper takes it; programs of this length can't be executed either.
    pub(crate) fn is_too_long(&self) -> bool {
        self.bytes.len() > LONGEST
    }

    /// The messages to send, in order; the descriptors go with the first.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(PIECE)
    }
}

/// Waits for a request; none when the server has gone instead.
pub(super) fn receive(from: BorrowedFd<'_>) -> Result<Option<Received>, Unreadable> {
    let mut bytes = vec![0; PIECE];
    let flags = RecvFlags::empty();
    let (first, descriptors) = match socket::receive(from, &mut bytes, flags) {
        Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(None),
        Ok(message) => message,
        Err(_) => return Err(Unreadable),
    };
    bytes.truncate(first);
    let header = Header::read(&bytes).ok_or(Unreadable)?;
    let whole = header.whole();
    let mut filled = bytes.len();
    bytes.resize(whole.max(filled), 0);
    while filled < whole {
        match socket::receive(from, &mut bytes[filled..], flags) {
            Ok((0, _)) | Err(_) => return Ok(None),
            Ok((more, _)) => filled += more,
        }
    }
    header.open(&bytes, descriptors).map(Some).ok_or(Unreadable)
}

impl Received {
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
    standing: Standing,
    is_deaf: bool,
    open_files: Option<(u64, u64)>,
    lengths: [usize; 4],
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let ([standing, limited, deaf, _], rest) = rest.split_first_chunk()?;
        let (soft, rest) = rest.split_first_chunk()?;
        let (hard, rest) = rest.split_first_chunk()?;
        let lengths: &[u8; 16] = rest.first_chunk()?;
        let mut all = [0; 4];
        for (length, bytes) in all.iter_mut().zip(lengths.chunks_exact(4)) {
            *length = u32::from_ne_bytes(bytes.try_into().ok()?) as usize;
        }
        let header = Self {
            standing: match standing {
                0 => Standing::Group,
                1 => Standing::Session,
                2 => Standing::Terminal,
                3 => Standing::TerminalBehind,
                _ => return None,
            },
            is_deaf: *deaf != 0,
            open_files: (*limited != 0)
                .then(|| (u64::from_ne_bytes(*soft), u64::from_ne_bytes(*hard))),
            lengths: all,
        };
        (*magic == MAGIC && header.whole() <= LONGEST).then_some(header)
    }

    fn whole(&self) -> usize {
        HEADER + self.lengths.iter().sum::<usize>()
    }

    fn open(self, bytes: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Received> {
        let passed = descriptors.split_off(descriptors.len().min(3));
        let mut rest = bytes.get(HEADER..)?;
        let mut strings = self.lengths.map(|length| {
            let (part, after) = rest.split_at_checked(length)?;
            rest = after;
            Strings::from_bytes(part)
        });
        let [candidates, argv, env, cwd] = strings.each_mut().map(Option::take);
        Some(Received {
            standing: self.standing,
            open_files: self.open_files,
            is_deaf: self.is_deaf,
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

    /// What arrives of a program with this argument, and how many messages it took.
    fn passed_on(argument: &[u8]) -> (Received, usize) {
        let program = Program {
            candidates: &strings(&[b"/bin/x"]),
            argv: &strings(&[b"x", argument]),
            env: &strings(&[]),
            cwd: &strings(&[b"/"]),
        };
        let request = Request::new(&program, (Standing::Terminal, true), Some((7, 8)));
        let (ours, theirs) = socket::pair().expect("a socket");
        let count = request.pieces().count();
        let reading = std::thread::spawn(move || receive(theirs.as_fd()));
        let three = [ours.as_fd(); 3];
        for (at, piece) in request.pieces().enumerate() {
            let descriptors: &[_] = if at == 0 { &three } else { &[] };
            while let Err(error) = socket::send(&ours, piece, descriptors) {
                assert_eq!(error, Errno::AGAIN);
                std::thread::yield_now();
            }
        }
        let received = reading.join().expect("it reads");
        let received = received.expect("it is readable");
        (received.expect("it is there"), count)
    }

    #[test]
    fn a_request_arrives_whole_in_however_many_pieces() {
        for (length, pieces) in [(0, 1), (1000, 1), (200_000, 13), (3_000_000, 184)] {
            let argument = vec![b'a'; length];
            let (received, count) = passed_on(&argument);
            assert_eq!(count, pieces);
            let argv: Vec<_> = received.argv.iter().collect();
            assert_eq!(argv, [b"x", &argument[..]]);
            assert_eq!(received.candidates.iter().count(), 1);
            assert_eq!(received.env.iter().count(), 0);
            assert_eq!(received.cwd.iter().next(), Some(&b"/"[..]));
            assert_eq!(received.standing, Standing::Terminal);
            assert!(received.is_deaf);
            assert_eq!(received.open_files, Some((7, 8)));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for bytes in [&b"hello"[..], &[0; HEADER], b"OKR1"] {
            let (ours, theirs) = socket::pair().expect("a socket");
            socket::send(&ours, bytes, &[]).expect("it is sent");
            assert!(receive(theirs.as_fd()).is_err(), "{bytes:?}");
        }
        let (ours, theirs) = socket::pair().expect("a socket");
        drop(ours);
        assert!(matches!(receive(theirs.as_fd()), Ok(None)));
    }
}
