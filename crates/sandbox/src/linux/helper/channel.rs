//! The channel between the server and the helper: a seqpacket socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use super::report::{MAX_LENGTH, Report};

/// The result of one receive on a [`HelperChannel`].
#[derive(Debug)]
pub(in crate::linux) enum HelperMessage {
    /// Nothing has arrived yet.
    NotYet,
    /// The helper sent a report.
    Report {
        report: Report,
        /// The helper's pid in the server's PID namespace.
        sender: Option<u32>,
        /// A pidfd of process 1 of the sandbox's PID namespace, if the helper sent one.
        init: Option<OwnedFd>,
    },
    /// All copies of the helper's end are closed.
    Closed,
}

/// The server's end of the channel. Non-blocking.
#[derive(Debug)]
pub(in crate::linux) struct HelperChannel(OwnedFd);

impl HelperChannel {
    /// Creates a channel and sends `config` over it. The second end is for the helper.
    pub(in crate::linux) fn open(config: &OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::net::sockopt::set_socket_passcred(&ours, true)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let files = [config.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let message = [IoSlice::new(b"file")];
        rustix::net::sendmsg(&ours, &message, &mut control, SendFlags::NOSIGNAL)?;
        Ok((Self(ours), theirs))
    }

    /// Duplicates the descriptor, to wait until it is readable.
    pub(in crate::linux) fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Returns the socket in blocking mode, for requests to a helper that serves them.
    pub(in crate::linux) fn into_socket(self) -> io::Result<OwnedFd> {
        rustix::net::sockopt::set_socket_passcred(&self.0, false)?;
        rustix::io::ioctl_fionbio(&self.0, false)?;
        Ok(self.0)
    }

    /// Receives one message without blocking. A message that can't be decoded is an error.
    pub(in crate::linux) fn recv(&self) -> io::Result<HelperMessage> {
        let mut bytes = [0; MAX_LENGTH];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1), ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffer = [IoSliceMut::new(&mut bytes)];
        let length = loop {
            let flags = RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&self.0, &mut buffer, &mut control, flags) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(HelperMessage::NotYet),
                Err(Errno::CONNRESET) => return Ok(HelperMessage::Closed),
                Err(errno) => return Err(errno.into()),
            }
        };
        let (mut sender, mut init) = (None, None);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid),
                RecvAncillaryMessage::ScmRights(mut files) => init = files.next(),
                _ => {}
            }
        }
        if length == 0 {
            return Ok(HelperMessage::Closed);
        }
        let report = Report::decode(&bytes[..length]).ok_or(io::ErrorKind::InvalidData)?;
        let sender = sender.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        Ok(HelperMessage::Report {
            report,
            sender,
            init,
        })
    }
}

/// Sends a report from the helper's end, with a pidfd of process 1 of the sandbox. Errors are
/// ignored: they mean that the server no longer waits.
pub(super) fn send(channel: BorrowedFd<'_>, report: Report, init: Option<BorrowedFd<'_>>) {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(init) = &init {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(init)));
    }
    let Ok(bytes) = report.encode() else {
        return;
    };
    let message = [IoSlice::new(&bytes)];
    let sent = rustix::net::sendmsg(channel, &message, &mut control, SendFlags::NOSIGNAL);
    // ETOOMANYREFS: the user's limit of descriptors in flight is reached. The server waits for the
    // report and can do without the descriptor.
    if sent == Err(Errno::TOOMANYREFS) {
        let mut empty = SendAncillaryBuffer::default();
        let _ = rustix::net::sendmsg(channel, &message, &mut empty, SendFlags::NOSIGNAL);
    }
}

/// Waits for the first message and returns the configuration file that comes with it.
pub(super) fn recv_config(channel: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 8];
    let mut buffer = [IoSliceMut::new(&mut bytes)];
    rustix::net::recvmsg(channel, &mut buffer, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    rights.flatten().next().ok_or_else(|| Errno::PROTO.into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::super::report::Step;
    use super::*;

    #[test]
    fn config_goes_to_the_helper_and_reports_come_back() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        let (ours, theirs) = HelperChannel::open(&file).expect("socket pair");
        assert!(matches!(ours.recv(), Ok(HelperMessage::NotYet)));
        recv_config(theirs.as_fd()).expect("receive");
        let failed = Report::Failed(Step::Seccomp, 22);
        send(theirs.as_fd(), failed, None);
        send(theirs.as_fd(), Report::Ready, Some(file.as_fd()));
        drop(theirs);
        for (expected, has_file) in [(failed, false), (Report::Ready, true)] {
            let Ok(HelperMessage::Report {
                report,
                sender,
                init,
            }) = ours.recv()
            else {
                panic!("{expected:?} was sent");
            };
            let received = (report, sender, init.is_some());
            assert_eq!(received, (expected, Some(std::process::id()), has_file));
        }
        assert!(matches!(ours.recv(), Ok(HelperMessage::Closed)));
    }
}
