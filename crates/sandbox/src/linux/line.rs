//! The line between the server and the stage: a socket that keeps messages apart.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use super::report::{LENGTH, Report};

/// What was heard on a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// A stage has said something; its number on this host comes with it.
    Report(Report, Option<u32>),
    /// Nobody holds the other end any more.
    End,
}

/// The server's end. Non-blocking.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    /// Opens one; the other end is for the stage, and has this file waiting for it.
    pub(super) fn open(file: &OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::net::sockopt::set_socket_passcred(&ours, true)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let message = [IoSlice::new(b"file")];
        rustix::net::sendmsg(&ours, &message, &mut control, SendFlags::NOSIGNAL)?;
        Ok((Self(ours), theirs))
    }

    /// A copy, to wait for.
    ///
    /// # Errors
    /// When too many are open.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// The socket itself, for talking to a stage that has stayed. It blocks from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn into_socket(self) -> io::Result<OwnedFd> {
        rustix::net::sockopt::set_socket_passcred(&self.0, false)?;
        rustix::io::ioctl_fionbio(&self.0, false)?;
        Ok(self.0)
    }

    /// Takes what has been said, without waiting.
    ///
    /// # Errors
    /// When the system refuses, or somebody speaks another language.
    pub fn listen(&self) -> io::Result<Heard> {
        let mut bytes = [0; LENGTH];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut place = [IoSliceMut::new(&mut bytes)];
        let length = loop {
            match rustix::net::recvmsg(&self.0, &mut place, &mut control, RecvFlags::empty()) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Heard::Nothing),
                Err(Errno::CONNRESET) => return Ok(Heard::End),
                Err(errno) => return Err(errno.into()),
            }
        };
        let sender = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid),
            _ => None,
        });
        if length == 0 {
            return Ok(Heard::End);
        }
        let report = Report::decode(&bytes[..length]).ok_or(io::ErrorKind::InvalidData)?;
        let sender = sender.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        Ok(Heard::Report(report, sender))
    }
}

/// Says something from the other end. If nobody hears it, nobody waits.
pub(super) fn tell(line: BorrowedFd<'_>, report: Report) {
    let _ = rustix::net::send(line, &report.encode(), SendFlags::NOSIGNAL);
}

/// Waits for the first message and takes the file that comes with it.
pub(super) fn take_file(line: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 8];
    let mut place = [IoSliceMut::new(&mut bytes)];
    rustix::net::recvmsg(line, &mut place, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    rights.flatten().next().ok_or_else(|| Errno::PROTO.into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;
    use crate::linux::report::Step;

    #[test]
    fn a_file_goes_one_way_and_reports_the_other() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        let (ours, theirs) = Line::open(&file).expect("a line");
        assert_eq!(ours.listen().expect("it listens"), Heard::Nothing);
        take_file(theirs.as_fd()).expect("it hears");
        let failed = Report::Failed(Step::Seccomp, 22);
        tell(theirs.as_fd(), failed);
        drop(theirs);
        let own = Some(std::process::id());
        assert_eq!(
            ours.listen().expect("it listens"),
            Heard::Report(failed, own)
        );
        assert_eq!(ours.listen().expect("it listens"), Heard::End);
    }
}
