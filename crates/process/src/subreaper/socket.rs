//! Sequenced-packet sockets that carry descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::descriptor_slots::SLOTS;
use crate::sys::wait_children::ChildSignals;

/// Creates a connected pair, both ends close-on-exec.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)
}

/// Sends one whole message. Never blocks and never raises SIGPIPE.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SLOTS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let bytes = [IoSlice::new(bytes)];
    loop {
        match rustix::net::sendmsg(&socket, &bytes, &mut control, flags) {
            Err(Errno::INTR) => {}
            result => return result.map(drop),
        }
    }
}

/// Receives one message, truncated to the buffer. Zero bytes mean end of file.
pub(super) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SLOTS))];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(buffer)];
        let length = match rustix::net::recvmsg(&socket, &mut buffers, &mut control, flags) {
            Err(Errno::INTR) => continue,
            result => result?.bytes,
        };
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        return Ok((length, rights.flatten().collect()));
    }
}

/// Waits for a message or hang-up on `server`, for a child event, or for the timeout. Returns whether
/// the socket is ready.
pub(super) fn wait_for_event(
    server: Option<impl AsFd>,
    signals: &ChildSignals,
    timeout: Option<Duration>,
) -> bool {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let server = server.as_ref().map(AsFd::as_fd);
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    fds.extend(server.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    // Only ENOMEM is possible; the caller's non-blocking checks follow in any case.
    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    fds.get(1).is_some_and(|fd| !fd.revents().is_empty())
}

/// Whether the other end is closed.
pub(super) fn is_closed(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let _ = rustix::event::poll(&mut fds, Some(&Timespec::default()));
    fds[0].revents().contains(PollFlags::HUP)
}
