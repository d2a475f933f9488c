//! Messages between the server and its helper, over a seqpacket socket pair.
//!
//! The server sends the configuration, and the helper reports about the setup of the sandbox. A message
//! is a version byte followed by postcard. Both ends are the same binary; the version guards against a
//! helper that was replaced while the server was running.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::Timeout;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 6;

/// An upper bound for the length of an encoded report.
const MAX_REPORT: usize = 16;

/// The maximum number of descriptors in one message.
pub(in crate::linux) const MAX_FDS: usize = 64;

pub(in crate::linux) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(&(VERSION, message)).map_err(io::Error::other)
}

/// Fails if the message has another version, is truncated, or has trailing bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok(((VERSION, message), [])) => Ok(message),
        _ => Err(Errno::PROTO.into()),
    }
}

/// One message from the helper.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) enum Report {
    /// Setup is complete and the program is executed next. The helper's end of the channel closes
    /// when that succeeds.
    Ready,
    /// This step failed with this errno.
    Failed(Step, i32),
}

/// A step in the start of a confined program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Step {
    /// Reading the configuration.
    #[error("read the helper's configuration")]
    Config,
    /// Moving the program's streams to their descriptors.
    #[error("take over the program's streams")]
    Streams,
    /// Starting bubblewrap. The server itself reports this failure.
    #[error("execute bwrap")]
    Bubblewrap,
    /// Mounting the plan.
    #[error("mount the sandbox's files")]
    Mounts,
    /// Entering the user namespace that can't change the mounts.
    #[error("enter the nested user namespace")]
    UserNamespace,
    /// Comparing the mounts with the plan.
    #[error("verify mounts")]
    MountCheck,
    /// Entering the working directory.
    #[error("enter the working directory")]
    WorkingDirectory,
    /// Dropping capabilities.
    #[error("drop privileges")]
    Privileges,
    /// Restricting itself with Landlock.
    #[error("set up Landlock")]
    Landlock,
    /// Installing the seccomp filter.
    #[error("install the seccomp filter")]
    Seccomp,
    /// Executing the program.
    #[error("execute the program")]
    Execute,
}

/// A report as the server receives it.
#[derive(Debug)]
pub(in crate::linux) struct ReceivedReport {
    pub(in crate::linux) report: Report,
    /// The helper's pid in the server's PID namespace.
    pub(in crate::linux) sender: Option<u32>,
    /// A pidfd of process 1 of the sandbox's PID namespace, if the helper sent one.
    pub(in crate::linux) init: Option<OwnedFd>,
}

/// The server's end of the channel. Non-blocking until [`recv_within`](Self::recv_within).
#[derive(Debug)]
pub(in crate::linux) struct HelperChannel(OwnedFd);

impl HelperChannel {
    /// Creates a channel and sends `config` over it. The second end is for the helper.
    pub(in crate::linux) fn open(config: &OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socket_pair()?;
        rustix::net::sockopt::set_socket_passcred(&ours, true)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        send_fds(&ours, b"file", &[config.as_fd()])?;
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

    /// Waits for one report. Fails with `WouldBlock` after `limit`. The channel blocks from then on.
    pub(in crate::linux) fn recv_within(
        &self,
        limit: Duration,
    ) -> io::Result<Option<ReceivedReport>> {
        rustix::io::ioctl_fionbio(&self.0, false)?;
        set_recv_timeout(&self.0, limit)?;
        self.recv()
    }

    /// Receives one report; none if all copies of the helper's end are closed. Fails with
    /// `WouldBlock` if nothing has arrived yet and the channel is non-blocking.
    pub(in crate::linux) fn recv(&self) -> io::Result<Option<ReceivedReport>> {
        let mut bytes = [0; MAX_REPORT];
        let (length, sender, init) = match recv_fd(&self.0, &mut bytes) {
            Ok((0, ..)) | Err(Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        Ok(Some(ReceivedReport {
            report: decode(&bytes[..length])?,
            sender: sender.map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
            init,
        }))
    }
}

/// Sends a report from the helper's end, with a pidfd of process 1 of the sandbox. Errors are
/// ignored: they mean that the server no longer waits.
pub(super) fn send(channel: BorrowedFd<'_>, report: Report, init: Option<BorrowedFd<'_>>) {
    let Ok(bytes) = encode(&report) else {
        return;
    };
    let sent = send_fds(channel, &bytes, init.as_slice());
    // ETOOMANYREFS: the user's limit of descriptors in flight is reached. The server waits for the
    // report and can do without the descriptor.
    if sent == Err(Errno::TOOMANYREFS) {
        let _ = send_fds(channel, &bytes, &[]);
    }
}

/// Waits for the first message and returns the configuration file that comes with it.
pub(super) fn recv_config(channel: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let (_, _, file) = recv_fd(channel, &mut [0; 8])?;
    file.ok_or(Errno::PROTO)
}

pub(in crate::linux) fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)
}

pub(in crate::linux) fn set_recv_timeout(socket: &OwnedFd, limit: Duration) -> Result<(), Errno> {
    rustix::net::sockopt::set_socket_timeout(socket, Timeout::Recv, Some(limit))
}

/// Sends a message with up to [`MAX_FDS`] descriptors. Fails with `INVAL` if they don't fit.
pub(in crate::linux) fn send_fds(
    socket: impl AsFd,
    message: &[u8],
    files: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(message)], &mut control, flags).map(drop)
}

/// Receives a message. Returns its length, its sender and its descriptor, if any.
fn recv_fd(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> Result<(usize, Option<Pid>, Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1), ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [IoSliceMut::new(bytes)];
    let message = rustix::io::retry_on_intr(|| {
        let flags = RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(&socket, &mut buffer, &mut control, flags)
    })?;
    let (mut sender, mut file) = (None, None);
    for ancillary in control.drain() {
        match ancillary {
            RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid),
            RecvAncillaryMessage::ScmRights(mut files) => file = files.next(),
            _ => {}
        }
    }
    Ok((message.bytes, sender, file))
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;

    #[test]
    fn config_goes_to_the_helper_and_reports_come_back() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        let (ours, theirs) = HelperChannel::open(&file).expect("socket pair");
        let nothing_yet = ours.recv().expect_err("nothing was sent");
        assert_eq!(nothing_yet.kind(), io::ErrorKind::WouldBlock);
        recv_config(theirs.as_fd()).expect("receive");
        let failed = Report::Failed(Step::Seccomp, 22);
        send(theirs.as_fd(), failed, None);
        send(theirs.as_fd(), Report::Ready, Some(file.as_fd()));
        drop(theirs);
        for (expected, has_file) in [(failed, false), (Report::Ready, true)] {
            let received = ours.recv().expect("receive").expect("was sent");
            let received = (received.report, received.sender, received.init.is_some());
            assert_eq!(received, (expected, Some(std::process::id()), has_file));
        }
        assert!(ours.recv().expect("receive").is_none(), "closed");
    }

    #[test]
    fn too_many_descriptors_are_refused() {
        let (ours, _theirs) = socket_pair().expect("socket pair");
        let files = [ours.as_fd(); 2 * MAX_FDS];
        assert_eq!(send_fds(&ours, b"x", &files[..MAX_FDS]), Ok(()));
        assert_eq!(send_fds(&ours, b"x", &files), Err(Errno::INVAL));
    }

    #[test]
    fn report_roundtrips() {
        let failed = |errno| Report::Failed(Step::Execute, errno);
        let steps = [
            Step::Config,
            Step::Bubblewrap,
            Step::Mounts,
            Step::UserNamespace,
            Step::MountCheck,
            Step::WorkingDirectory,
            Step::Privileges,
            Step::Landlock,
            Step::Seccomp,
            Step::Execute,
        ];
        let all_steps = steps.map(|step| Report::Failed(step, i32::MIN));
        for report in [Report::Ready, failed(13)].into_iter().chain(all_steps) {
            let bytes = encode(&report).expect("encode");
            assert!(bytes.len() <= MAX_REPORT);
            assert_eq!(decode::<Report>(&bytes).ok(), Some(report));
        }
        assert!(decode::<Report>(b"").is_err());
        let mut unknown = encode(&failed(13)).expect("encode");
        unknown[1] = 10;
        assert!(decode::<Report>(&unknown).is_err());
    }
}
