//! The socket between an executor and its worker.

use std::any::Any;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::cmsg_space;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// The largest packet. Well below the default send buffer of a socket.
const PACKET_BYTES: usize = 64 * 1024;

/// The largest message. The longest response is a directory listing: 50,000 names of 255 bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// One end of a blocking `SOCK_SEQPACKET` connection.
///
/// A message is a packet with its length, and the file descriptor if there is one, followed by its
/// bytes in packets.
pub struct WorkerSocket {
    socket: OwnedFd,
    /// Dropped with the socket.
    _guard: Box<dyn Any + Send + Sync>,
}

/// A received message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: Option<OwnedFd>,
}

impl WorkerSocket {
    /// The executor's end. Every send and receive waits at most `timeout`. `guard` is dropped with
    /// the socket.
    ///
    /// # Errors
    /// When the descriptor is no socket.
    pub fn client(
        socket: OwnedFd,
        timeout: Duration,
        guard: impl Any + Send + Sync,
    ) -> io::Result<Self> {
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(timeout))?;
        }
        Ok(WorkerSocket {
            socket,
            _guard: Box::new(guard),
        })
    }

    /// The worker's end, which waits without a limit.
    pub(super) fn worker(socket: OwnedFd) -> Self {
        WorkerSocket {
            socket,
            _guard: Box::new(()),
        }
    }

    /// Sends a message, and a file descriptor with it.
    pub(crate) fn send(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        let files: Vec<_> = file.into_iter().collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let head = [IoSlice::new(&length)];
        retry_on_intr(|| {
            rustix::net::sendmsg(&self.socket, &head, &mut control, SendFlags::NOSIGNAL)
        })?;
        for packet in bytes.chunks(PACKET_BYTES) {
            retry_on_intr(|| rustix::net::send(&self.socket, packet, SendFlags::NOSIGNAL))?;
        }
        Ok(())
    }

    /// Waits for a message; none if the other end is closed.
    pub(crate) fn receive(&self) -> io::Result<Option<Message>> {
        let mut length = [0; 8];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = retry_on_intr(|| {
            let mut buffer = [IoSliceMut::new(&mut length)];
            rustix::net::recvmsg(&self.socket, &mut buffer, &mut control, flags)
        });
        match received {
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
            Ok(received) if received.bytes == 0 => return Ok(None),
            Ok(received) if received.bytes < length.len() => return Err(Errno::PROTO.into()),
            Ok(_) => {}
        }
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file = files.next().and_then(|mut files| files.next());
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        let bytes = self.receive_bytes(length)?;
        Ok(Some(Message { bytes, file }))
    }

    fn receive_bytes(&self, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_MESSAGE_BYTES {
            return Err(Errno::MSGSIZE.into());
        }
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| io::Error::from(Errno::NOMEM))?;
        while bytes.len() < length {
            let (received, _) = retry_on_intr(|| {
                let flags = RecvFlags::empty();
                rustix::net::recv(&self.socket, spare_capacity(&mut bytes), flags)
            })?;
            if received == 0 {
                return Err(Errno::PIPE.into());
            }
        }
        Ok(bytes)
    }
}

impl fmt::Debug for WorkerSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkerSocket")
            .field(&self.socket.as_fd())
            .finish()
    }
}
