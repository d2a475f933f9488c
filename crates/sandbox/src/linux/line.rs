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
#[derive(Debug)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// A stage has said something.
    Report {
        /// What.
        report: Report,
        /// Its number on this host.
        sender: Option<u32>,
        /// The first process in its namespaces, if it has sent that along.
        first: Option<OwnedFd>,
    },
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
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1), ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut place = [IoSliceMut::new(&mut bytes)];
        let length = loop {
            let flags = RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&self.0, &mut place, &mut control, flags) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Heard::Nothing),
                Err(Errno::CONNRESET) => return Ok(Heard::End),
                Err(errno) => return Err(errno.into()),
            }
        };
        let (mut sender, mut first) = (None, None);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid),
                RecvAncillaryMessage::ScmRights(mut files) => first = files.next(),
                _ => {}
            }
        }
        if length == 0 {
            return Ok(Heard::End);
        }
        let report = Report::decode(&bytes[..length]).ok_or(io::ErrorKind::InvalidData)?;
        let sender = sender.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        Ok(Heard::Report {
            report,
            sender,
            first,
        })
    }
}

/// Says something from the other end, and who was the first inside. If nobody hears it, nobody waits.
pub(super) fn tell(line: BorrowedFd<'_>, report: Report, first: Option<BorrowedFd<'_>>) {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(first) = &first {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(first)));
    }
    let bytes = report.encode();
    let message = [IoSlice::new(&bytes)];
    let said = rustix::net::sendmsg(line, &message, &mut control, SendFlags::NOSIGNAL);
    // Others of the same user may have too many on their way. The report is what is waited for.
    if said == Err(Errno::TOOMANYREFS) {
        let mut nothing = SendAncillaryBuffer::default();
        let _ = rustix::net::sendmsg(line, &message, &mut nothing, SendFlags::NOSIGNAL);
    }
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
        assert!(matches!(ours.listen(), Ok(Heard::Nothing)));
        take_file(theirs.as_fd()).expect("it hears");
        let failed = Report::Failed(Step::Seccomp, 22);
        tell(theirs.as_fd(), failed, None);
        tell(theirs.as_fd(), Report::Ready, Some(file.as_fd()));
        drop(theirs);
        for (said, with_a_file) in [(failed, false), (Report::Ready, true)] {
            let Ok(Heard::Report {
                report,
                sender,
                first,
            }) = ours.listen()
            else {
                panic!("{said:?} was said");
            };
            let heard = (report, sender, first.is_some());
            assert_eq!(heard, (said, Some(std::process::id()), with_a_file));
        }
        assert!(matches!(ours.listen(), Ok(Heard::End)));
    }
}
