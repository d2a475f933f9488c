//! The reading side of a child's output streams.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use outpost_types::Stream;
use rustix::io::Errno;
use tokio::io::Interest;

use crate::sys::register::Registered;
use crate::terminal::PtyReadiness;

/// The maximum size of one read, and the default capacity of a pipe.
const MAX_READ: usize = 64 * 1024;

/// The capacity of a pipe after it was found full. Throughput is a quarter higher than with the default
/// of 64 KiB; twice as much gains another 4 %, but an unprivileged user has only 64 MiB for all pipes.
const GROWN_PIPE: usize = 512 * 1024;

/// How many pipes may have that capacity at a time, because it is memory of the kernel that no budget counts:
/// 14 MiB more than with the default. Further floods are a quarter slower.
const MAX_GROWN_PIPES: usize = 32;

/// The pipes with a larger capacity.
static GROWN_PIPES: AtomicUsize = AtomicUsize::new(0);

/// The maximum drained from a terminal after the exit. Another process may write to it endlessly, and
/// unlike a pipe a terminal does not report how much it holds.
const DRAIN_PTY: usize = 1024 * 1024;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_READ].into_boxed_slice());
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// At least one byte.
    Data(Bytes),
    /// Nothing now; wait for [`Output::readable`].
    Empty,
    /// End of the stream: all writers have closed it.
    End,
}

/// The reading side of one stream. It holds no buffer between two reads. Dropping it closes the stream;
/// a writer then gets SIGPIPE, or SIGHUP on a terminal.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    /// The child and processes that inherited from it hold the writing end of a pipe. A terminal is
    /// shared with the input.
    fd: Registered,
    /// Set on a terminal, which is registered for writing only.
    readiness: Option<PtyReadiness>,
    grown_pipe: Option<GrownPipe>,
    ended: bool,
}

/// A place among the pipes with a larger capacity.
#[derive(Debug)]
struct GrownPipe;

impl GrownPipe {
    fn reserve() -> Option<Self> {
        let take = |count| (count < MAX_GROWN_PIPES).then_some(count + 1);
        let taken = GROWN_PIPES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| Self)
    }
}

impl Drop for GrownPipe {
    fn drop(&mut self) {
        GROWN_PIPES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why reading stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum StopReason {
    /// The buffer is full.
    Full,
    /// There is no more data at the moment.
    Empty,
    Ended,
}

impl Output {
    pub(crate) fn new(stream: Stream, fd: Registered, readiness: Option<PtyReadiness>) -> Self {
        Self {
            stream,
            fd,
            readiness,
            grown_pipe: None,
            ended: false,
        }
    }

    /// Which stream this is.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Resolves when [`Output::read`] may return data or the end. Cancel safe.
    pub async fn readable(&self) -> io::Result<()> {
        match &self.readiness {
            _ if self.ended => {}
            None => self.fd.readable().await?.retain_ready(),
            Some(readiness) => readiness.ready().await?,
        }
        Ok(())
    }

    /// Reads what is available, up to `limit` bytes and 64 KiB. Never blocks.
    pub fn read(&mut self, limit: usize) -> ReadOutcome {
        if self.ended {
            return ReadOutcome::End;
        }
        if limit == 0 {
            return ReadOutcome::Empty;
        }
        let mut data = Bytes::new();
        let mut stop = StopReason::Empty;
        // `WouldBlock` tells the runtime that the stream is empty; the bytes read before that are
        // returned through the variables above.
        let mut take = || {
            (data, stop) = self.read_available(limit);
            match stop {
                StopReason::Empty => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                StopReason::Full | StopReason::Ended => Ok(()),
            }
        };
        let _ = match &self.readiness {
            None => self.fd.try_io(Interest::READABLE, |_| take()),
            Some(readiness) => readiness.try_io(take),
        };
        self.ended = stop == StopReason::Ended;
        self.adapt(stop, data.len() == MAX_READ);
        match (data.is_empty(), self.ended) {
            (false, _) => ReadOutcome::Data(data),
            (true, true) => ReadOutcome::End,
            (true, false) => ReadOutcome::Empty,
        }
    }

    /// Reads everything that is available at the time of the call. For the moment after the exit, so
    /// that the child's output precedes it. Never blocks, and ignores what other processes write
    /// meanwhile.
    pub fn drain(&mut self) -> Vec<Bytes> {
        let mut left = match self.readiness {
            None => rustix::io::ioctl_fionread(self.fd.get_ref()).map_or(0, |n| n as usize),
            Some(_) => DRAIN_PTY,
        };
        let mut chunks = Vec::new();
        // Bypass the runtime, whose readiness may not be up to date yet.
        while left > 0 && !self.ended {
            let (data, stop) = self.read_available(left);
            left -= data.len();
            self.ended = stop == StopReason::Ended;
            if !data.is_empty() {
                chunks.push(data);
            }
            if stop != StopReason::Full {
                break;
            }
        }
        chunks
    }

    fn read_available(&self, limit: usize) -> (Bytes, StopReason) {
        BUFFER.with_borrow_mut(|buffer| {
            let space = limit.min(buffer.len());
            let (filled, stop) = self.fill(&mut buffer[..space]);
            (Bytes::copy_from_slice(&buffer[..filled]), stop)
        })
    }

    fn fill(&self, buffer: &mut [u8]) -> (usize, StopReason) {
        let is_pty = self.stream == Stream::Pty;
        let mut filled = 0;
        while filled < buffer.len() {
            let read = || rustix::io::read(self.fd.get_ref(), &mut buffer[filled..]);
            match self.read_once(read) {
                Ok(0) => return (filled, StopReason::Ended),
                Ok(count) => filled += count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return (filled, StopReason::Empty),
                Err(error) => {
                    // On a terminal, the last slave was closed.
                    if error != Errno::IO || !is_pty {
                        tracing::warn!(stream = ?self.stream, %error, "reading child output failed");
                    }
                    return (filled, StopReason::Ended);
                }
            }
            // A read from a pipe returns all data, so a short read has emptied it, and new data causes
            // a new event. A terminal returns one internal buffer at a time and has to be read again.
            if !is_pty && filled < buffer.len() {
                return (filled, StopReason::Empty);
            }
        }
        (filled, StopReason::Full)
    }

    /// Reads once. For a terminal the kernel checks for data first and for open slaves afterwards, so
    /// data written just before the last close would be lost without a second read.
    fn read_once(&self, mut read: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
        match read() {
            Err(Errno::IO) if self.stream == Stream::Pty => read(),
            result => result,
        }
    }

    /// Tunes the source after a read. `flooding`: the read was as large as possible.
    fn adapt(&mut self, stop: StopReason, flooding: bool) {
        match &mut self.readiness {
            // Fewer and larger reads and writes. Fails if the user has many large pipes already; then
            // the capacity stays as it is.
            None if flooding && self.grown_pipe.is_none() => {
                self.grown_pipe = GrownPipe::reserve();
                if self.grown_pipe.is_some() {
                    let _ = rustix::pipe::fcntl_setpipe_size(self.fd.get_ref(), GROWN_PIPE);
                }
            }
            Some(readiness) if stop == StopReason::Empty || flooding => {
                readiness.set_enabled(self.fd.get_ref(), stop == StopReason::Empty);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::register;

    #[tokio::test]
    async fn few_pipes_grow_at_a_time() {
        let capacity = |output: &Output| rustix::pipe::fcntl_getpipe_size(output.fd.get_ref());
        let flood = async || {
            let (read, write) = rustix::pipe::pipe().expect("a pipe");
            rustix::io::ioctl_fionbio(&read, true).expect("it can be told");
            let pipe = register::descriptor(read, Interest::READABLE).expect("it is registered");
            let mut write = std::fs::File::from(write);
            write.write_all(&[b'x'; MAX_READ]).expect("it has space");
            let mut output = Output::new(Stream::Stdout, pipe, None);
            output.readable().await.expect("it is readable");
            assert!(matches!(output.read(MAX_READ), ReadOutcome::Data(_)));
            (output, write)
        };
        let mut floods = Vec::new();
        for _ in 0..MAX_GROWN_PIPES {
            floods.push(flood().await);
        }
        let usual = capacity(&flood().await.0).expect("it has one");
        assert!(usual < GROWN_PIPE);
        for (output, _) in &floods {
            assert_eq!(capacity(output), Ok(GROWN_PIPE));
        }
        floods.pop();
        assert_eq!(capacity(&flood().await.0), Ok(GROWN_PIPE), "one has ended");
    }

    /// Simulates a last write and close right after the kernel has checked for data.
    #[tokio::test]
    async fn terminal_is_read_again_before_its_end() {
        let size = crate::TerminalSize { rows: 24, cols: 80 };
        let (master, _slave) = crate::terminal::open(size).expect("a terminal");
        let terminal = register::descriptor(master, Interest::WRITABLE).expect("it is registered");
        let readiness = PtyReadiness::new(terminal.get_ref()).expect("it has a readiness");
        let output = Output::new(Stream::Pty, terminal, Some(readiness));
        let mut results = [Err(Errno::IO), Ok(4), Err(Errno::IO), Err(Errno::IO)].into_iter();
        let mut read = || output.read_once(|| results.next().unwrap_or(Ok(0)));
        assert_eq!(read(), Ok(4), "data written before the close");
        assert_eq!(read(), Err(Errno::IO), "the end");
    }

    #[tokio::test]
    async fn drain_reads_only_what_was_available() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&read, true).expect("it can be told");
        let capacity = rustix::pipe::fcntl_getpipe_size(&read).expect("it has one");
        let pipe = register::descriptor(read, Interest::READABLE).expect("it is registered");
        let mut output = Output::new(Stream::Stdout, pipe, None);
        let flood = std::thread::spawn(move || {
            let mut write = std::fs::File::from(write);
            while write.write_all(&[b'x'; 4096]).is_ok() {}
        });
        let end = Instant::now() + Duration::from_secs(30);
        for _ in 0..500 {
            while rustix::io::ioctl_fionread(output.fd.get_ref()) != Ok(capacity as u64) {
                assert!(Instant::now() < end, "the pipe never filled");
                std::thread::yield_now();
            }
            assert_eq!(output.drain().concat().len(), capacity);
        }
        drop(output);
        flood.join().expect("it ends with the pipe");
    }
}
