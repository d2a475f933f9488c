//! The line between who asks and who answers.

use std::any::Any;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// How much is sent at once: well below what a socket holds unless it is told otherwise.
const PIECE: usize = 64 * 1024;

/// The longest message. A listing is the longest answer, 50,000 names of 255 bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// One end of a line: a connected socket that keeps messages apart, and blocks.
pub struct Line {
    socket: OwnedFd,
    /// Dropped with the line, for who has to know that nobody asks any more.
    _whose: Box<dyn Any + Send + Sync>,
}

/// What came over a line.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) file: Option<OwnedFd>,
}

impl Line {
    /// The end of who asks, which waits no longer than `within` for anything. What is `whose` is
    /// dropped with it.
    ///
    /// # Errors
    /// When it is no socket.
    pub fn asking(
        socket: OwnedFd,
        within: Duration,
        whose: impl Any + Send + Sync,
    ) -> io::Result<Self> {
        for timeout in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, timeout, Some(within))?;
        }
        Ok(Line {
            socket,
            _whose: Box::new(whose),
        })
    }

    /// The end of who answers, who waits for as long as somebody may ask.
    pub(super) fn answering(socket: OwnedFd) -> Self {
        Line {
            socket,
            _whose: Box::new(()),
        }
    }

    /// Says something, and gives a file along.
    pub(super) fn send(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        let files: Vec<_> = file.into_iter().collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let head = [IoSlice::new(&length)];
        again(|| rustix::net::sendmsg(&self.socket, &head, &mut control, SendFlags::NOSIGNAL))?;
        for piece in bytes.chunks(PIECE) {
            again(|| rustix::net::send(&self.socket, piece, SendFlags::NOSIGNAL))?;
        }
        Ok(())
    }

    /// Waits for something to be said; none if nobody will.
    pub(super) fn receive(&self) -> io::Result<Option<Message>> {
        let mut length = [0; 8];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let heard = again(|| {
            let mut place = [IoSliceMut::new(&mut length)];
            rustix::net::recvmsg(&self.socket, &mut place, &mut control, flags)
        });
        match heard {
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
            Ok(heard) if heard.bytes == 0 => return Ok(None),
            Ok(heard) if heard.bytes < length.len() => return Err(Errno::PROTO.into()),
            Ok(_) => {}
        }
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file = files.next().and_then(|mut files| files.next());
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        let bytes = self.take(length)?;
        Ok(Some(Message { bytes, file }))
    }

    fn take(&self, length: usize) -> io::Result<Vec<u8>> {
        if length > LONGEST {
            return Err(Errno::MSGSIZE.into());
        }
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(length);
        room.map_err(|_| io::Error::from(Errno::NOMEM))?;
        while bytes.len() < length {
            let flags = RecvFlags::empty();
            let (taken, _) =
                again(|| rustix::net::recv(&self.socket, spare_capacity(&mut bytes), flags))?;
            if taken == 0 {
                return Err(Errno::PIPE.into());
            }
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.socket.as_fd()).finish()
    }
}

fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
