//! What a child writes.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::bell::Bell;
use crate::terminal::Registered;

/// The buffer a thread lends to every read, and what a pipe holds unless told otherwise.
const SCRATCH: usize = 64 * 1024;

/// The most that is read at once into a buffer of its own.
const FRESH: usize = 256 * 1024;

/// The size a pipe is given once it has been found full. A quarter faster than the 64 KiB it starts
/// with; twice as much gains 4 % more, and a user without privileges has only 64 MiB for all pipes.
const GROWN_PIPE: usize = 512 * 1024;

/// At most this much is taken from a terminal when its child has ended; somebody else may be
/// writing to it without end, and a terminal can't say how much it holds.
const DRAIN_PTY: usize = 1024 * 1024;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// Which stream of a child it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// Everything that appears on its terminal.
    Pty,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Bytes, never none.
    Data(Bytes),
    /// Nothing now; [`Output::readable`] says when to try again.
    Empty,
    /// Nothing ever again: everybody who could write has closed.
    End,
}

/// The reading side of one stream. It holds no buffer between two reads. Dropping it closes the
/// stream, and who writes to it then gets SIGPIPE, or SIGHUP on a terminal.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    source: Source,
    /// The last read filled the scratch buffer: more is coming than is worth copying.
    surging: bool,
    grown: bool,
    ended: bool,
}

#[derive(Debug)]
enum Source {
    /// The child, and who inherited from it, hold the writing end.
    Pipe(AsyncFd<OwnedFd>),
    Pty {
        /// Shared with the input.
        terminal: Registered,
        bell: Bell,
    },
}

/// Why gathering stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stop {
    /// There is no room for more.
    Full,
    /// There is no more at the moment.
    Dry,
    Ended,
}

impl Output {
    pub(crate) fn pipe(stream: Stream, pipe: AsyncFd<OwnedFd>) -> Self {
        Self::new(stream, Source::Pipe(pipe))
    }

    pub(crate) fn pty(terminal: Registered) -> io::Result<Self> {
        let bell = Bell::new(terminal.get_ref())?;
        Ok(Self::new(Stream::Pty, Source::Pty { terminal, bell }))
    }

    fn new(stream: Stream, source: Source) -> Self {
        Self {
            stream,
            source,
            surging: false,
            grown: false,
            ended: false,
        }
    }

    /// Which stream this is.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Resolves when [`Output::read`] is worth trying. May be cancelled.
    pub async fn readable(&self) -> io::Result<()> {
        if !self.ended {
            match &self.source {
                Source::Pipe(pipe) => pipe.readable().await?.retain_ready(),
                Source::Pty { bell, .. } => bell.rung().await?,
            }
        }
        Ok(())
    }

    /// Takes what is there now, up to `limit` bytes; never waits.
    pub fn read(&mut self, limit: usize) -> ReadOutcome {
        if self.ended {
            return ReadOutcome::End;
        }
        if limit == 0 {
            return ReadOutcome::Empty;
        }
        let mut data = Bytes::new();
        let mut stop = Stop::Dry;
        // An error that would block is how the runtime learns that there is no more; the bytes
        // found before it leave by the variables above.
        let mut take = || {
            (data, stop) = self.gather(self.descriptor(), limit);
            match stop {
                Stop::Dry => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                Stop::Full | Stop::Ended => Ok(()),
            }
        };
        let _ = match &self.source {
            Source::Pipe(pipe) => pipe.try_io(Interest::READABLE, |_| take()),
            Source::Pty { bell, .. } => bell.try_io(take),
        };
        self.ended = stop == Stop::Ended;
        self.surging = data.len() >= SCRATCH;
        self.adapt(stop);
        match (data.is_empty(), self.ended) {
            (false, _) => ReadOutcome::Data(data),
            (true, true) => ReadOutcome::End,
            (true, false) => ReadOutcome::Empty,
        }
    }

    /// Takes everything that was there when it was called, for the moment the child has ended: what
    /// it wrote is before its exit. Never waits, and doesn't chase others who go on writing.
    pub fn drain(&mut self) -> Vec<Bytes> {
        let mut left = match &self.source {
            Source::Pipe(pipe) => rustix::io::ioctl_fionread(pipe).map_or(0, |n| n as usize),
            Source::Pty { .. } => DRAIN_PTY,
        };
        let mut chunks = Vec::new();
        // Not by way of the runtime, which may not have heard yet that there is something.
        while left > 0 && !self.ended {
            let (data, stop) = self.gather(self.descriptor(), left.min(SCRATCH));
            left -= data.len();
            self.ended = stop == Stop::Ended;
            if !data.is_empty() {
                chunks.push(data);
            }
            if stop != Stop::Full {
                break;
            }
        }
        chunks
    }

    fn gather(&self, fd: BorrowedFd<'_>, limit: usize) -> (Bytes, Stop) {
        if self.surging && limit > SCRATCH {
            let mut buffer = Vec::new();
            // Where there is no memory for it, less at once will do.
            if buffer.try_reserve_exact(limit.min(FRESH)).is_ok() {
                return self.gather_fresh(fd, buffer);
            }
        }
        BUFFER.with_borrow_mut(|buffer| {
            let room = limit.min(buffer.len());
            let (filled, stop) = self.fill(fd, &mut buffer[..room]);
            (Bytes::copy_from_slice(&buffer[..filled]), stop)
        })
    }

    /// Reads into the empty buffer, which is given away as it is.
    fn gather_fresh(&self, fd: BorrowedFd<'_>, mut buffer: Vec<u8>) -> (Bytes, Stop) {
        let stop = loop {
            let room = buffer.capacity() - buffer.len();
            if room == 0 {
                break Stop::Full;
            }
            let result = self.ask(|| rustix::io::read(fd, spare_capacity(&mut buffer)));
            match self.step(result, room) {
                Ok(()) => {}
                Err(stop) => break stop,
            }
        };
        // What is retained is counted by its length, so it must not hide much more.
        if buffer.len() < buffer.capacity() / 4 * 3 {
            buffer.shrink_to_fit();
        }
        (Bytes::from(buffer), stop)
    }

    fn fill(&self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> (usize, Stop) {
        let mut filled = 0;
        while filled < buffer.len() {
            let room = buffer.len() - filled;
            let result = self.ask(|| rustix::io::read(fd, &mut buffer[filled..]));
            filled += result.unwrap_or(0);
            if let Err(stop) = self.step(result, room) {
                return (filled, stop);
            }
        }
        (filled, Stop::Full)
    }

    /// Reads once. The kernel looks for bytes of a terminal first and for its last user afterwards; one
    /// that writes and leaves in between would be lost if it weren't asked again.
    fn ask(&self, mut read: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
        match read() {
            Err(Errno::IO) if self.stream == Stream::Pty => read(),
            result => result,
        }
    }

    /// Whether to go on after one read with `room` for its bytes.
    fn step(&self, result: Result<usize, Errno>, room: usize) -> Result<(), Stop> {
        match result {
            Ok(0) => Err(Stop::Ended),
            // A pipe gives all it has, so a short read has emptied it, and whatever comes next
            // makes a new event. A terminal gives a buffer at a time and has to be asked again.
            Ok(n) if n < room && self.stream != Stream::Pty => Err(Stop::Dry),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(Errno::AGAIN) => Err(Stop::Dry),
            // How a terminal says that its last user has closed it.
            Err(Errno::IO) if self.stream == Stream::Pty => Err(Stop::Ended),
            Err(error) => {
                tracing::warn!(stream = ?self.stream, %error, "reading from a child failed");
                Err(Stop::Ended)
            }
        }
    }

    /// Prepares for more after a read that stopped for this reason.
    fn adapt(&mut self, stop: Stop) {
        match &mut self.source {
            // Fewer and larger reads for both sides. Not granted when the user has many large
            // pipes already; then it stays as it is.
            Source::Pipe(pipe) if self.surging && !self.grown => {
                let _ = rustix::pipe::fcntl_setpipe_size(pipe.as_fd(), GROWN_PIPE);
                self.grown = true;
            }
            Source::Pipe(_) => {}
            Source::Pty { terminal, bell } if stop == Stop::Dry => bell.heed(terminal.get_ref()),
            Source::Pty { terminal, bell } if self.surging => bell.mute(terminal.get_ref()),
            Source::Pty { .. } => {}
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::Pipe(pipe) => pipe.as_fd(),
            Source::Pty { terminal, .. } => terminal.get_ref().as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::register;

    /// As when the last user of a terminal writes and leaves just after the kernel has looked for bytes.
    #[tokio::test]
    async fn a_terminal_is_asked_once_more_before_it_has_ended() {
        let size = crate::Size { rows: 24, cols: 80 };
        let (master, _slave) = crate::terminal::open(size).expect("a terminal");
        let master = std::sync::Arc::new(crate::terminal::Terminal::new(master));
        let terminal = register::terminal(master).expect("it is registered");
        let output = Output::pty(terminal).expect("it has a bell");
        let mut answers = [Err(Errno::IO), Ok(4), Err(Errno::IO), Err(Errno::IO)].into_iter();
        let mut ask = || output.ask(|| answers.next().unwrap_or(Ok(0)));
        assert_eq!(ask(), Ok(4), "bytes that came with the end");
        assert_eq!(ask(), Err(Errno::IO), "the end");
    }

    #[tokio::test]
    async fn draining_takes_what_was_there_and_no_more() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&read, true).expect("it can be told");
        let capacity = rustix::pipe::fcntl_getpipe_size(&read).expect("it has one");
        let pipe = register::descriptor(read, Interest::READABLE).expect("it is registered");
        let mut output = Output::pipe(Stream::Stdout, pipe);
        let flood = std::thread::spawn(move || {
            let mut write = std::fs::File::from(write);
            while write.write_all(&[b'x'; 4096]).is_ok() {}
        });
        let end = Instant::now() + Duration::from_secs(30);
        for _ in 0..500 {
            while rustix::io::ioctl_fionread(output.descriptor()) != Ok(capacity as u64) {
                assert!(Instant::now() < end, "nobody floods");
                std::thread::yield_now();
            }
            assert_eq!(output.drain().concat().len(), capacity);
        }
        drop(output);
        flood.join().expect("it ends with the pipe");
    }
}
