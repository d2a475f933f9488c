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

const VERSION: u8 = 10;

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
    /// when that succeeds. These descriptors come with it, in this order.
    Ready {
        /// A pidfd of process 1 of the sandbox.
        has_init: bool,
        /// The listener for system calls that a supervisor answers.
        has_listener: bool,
        /// The number of listeners for connections that the server accepts.
        listeners: u8,
    },
    /// This step failed with this errno.
    Failed(Step, i32),
}

/// A step in the start of a sandboxed program.
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
    /// Listening for the server in the network namespace.
    #[error("listen in the sandbox's network")]
    Listen,
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
    pub(in crate::linux) helper_pid: Option<u32>,
    /// A pidfd of process 1 of the sandbox's PID namespace, if the helper sent one.
    pub(in crate::linux) init: Option<OwnedFd>,
    /// The seccomp listener for system calls of the program, if the helper sent one.
    pub(in crate::linux) seccomp_listener: Option<OwnedFd>,
    /// Listeners for connections of the program, in the order of the configuration.
    pub(in crate::linux) tcp_listeners: Vec<OwnedFd>,
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
        let (length, sender, files) = match recv_fds(&self.0, &mut bytes) {
            Ok((0, ..)) | Err(Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        let report = decode(&bytes[..length])?;
        let mut files = files.into_iter();
        let mut take = |count: u8| files.by_ref().take(count.into()).collect::<Vec<_>>();
        let (init, listener, listeners) = match report {
            Report::Ready {
                has_init,
                has_listener,
                listeners,
            } => (
                take(has_init.into()).pop(),
                take(has_listener.into()).pop(),
                take(listeners),
            ),
            Report::Failed(..) => (None, None, Vec::new()),
        };
        Ok(Some(ReceivedReport {
            report,
            helper_pid: sender.map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
            init,
            seccomp_listener: listener,
            tcp_listeners: listeners,
        }))
    }
}

/// Sends a failure from the helper's end. Errors are ignored: they mean that the server no longer
/// waits.
pub(super) fn send_failure(channel: BorrowedFd<'_>, step: Step, errno: i32) {
    if let Ok(bytes) = encode(&Report::Failed(step, errno)) {
        let _ = send_fds(channel, &bytes, &[]);
    }
}

/// Reports from the helper's end that setup is complete. Fails only if there are `listeners`, which the
/// server can't do without; other errors are ignored as in [`send_failure`].
pub(super) fn send_ready(
    channel: BorrowedFd<'_>,
    init: Option<BorrowedFd<'_>>,
    listener: Option<BorrowedFd<'_>>,
    listeners: &[OwnedFd],
) -> Result<(), Errno> {
    let ready = |init: Option<_>, listener: Option<_>| {
        let bytes = encode(&Report::Ready {
            has_init: init.is_some(),
            has_listener: listener.is_some(),
            listeners: u8::try_from(listeners.len()).map_err(|_| Errno::INVAL)?,
        });
        let bytes = bytes.map_err(|_| Errno::INVAL)?;
        let listeners = listeners.iter().map(AsFd::as_fd);
        let files: Vec<_> = init.into_iter().chain(listener).chain(listeners).collect();
        send_fds(channel, &bytes, &files)
    };
    // ETOOMANYREFS: the user's limit of descriptors in flight is reached. The server waits for the
    // report and can do without the first two.
    match ready(init, listener) {
        Err(Errno::TOOMANYREFS) if listeners.is_empty() => drop(ready(None, None)),
        Err(error) if !listeners.is_empty() => return Err(error),
        _ => {}
    }
    Ok(())
}

/// Waits for the first message and returns the configuration file that comes with it.
pub(super) fn recv_config(channel: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let (_, _, files) = recv_fds(channel, &mut [0; 8])?;
    files.into_iter().next().ok_or(Errno::PROTO)
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

/// Receives a message. Returns its length, its sender and its descriptors.
fn recv_fds(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> Result<(usize, Option<Pid>, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1), ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [IoSliceMut::new(bytes)];
    let message = rustix::io::retry_on_intr(|| {
        let flags = RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(&socket, &mut buffer, &mut control, flags)
    })?;
    let (mut sender, mut files) = (None, Vec::new());
    for ancillary in control.drain() {
        match ancillary {
            RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid),
            RecvAncillaryMessage::ScmRights(received) => files.extend(received),
            _ => {}
        }
    }
    Ok((message.bytes, sender, files))
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
        send_failure(theirs.as_fd(), Step::Seccomp, 22);
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        for (has_init, has_listener) in cases {
            let listeners = file.try_clone().into_iter().collect::<Vec<_>>();
            let file = |has: bool| has.then_some(file.as_fd());
            let (init, listener) = (file(has_init), file(has_listener));
            send_ready(theirs.as_fd(), init, listener, &listeners).expect("send");
        }
        drop(theirs);
        let received = ours.recv().expect("receive").expect("was sent");
        assert_eq!(received.report, Report::Failed(Step::Seccomp, 22));
        assert_eq!(received.helper_pid, Some(std::process::id()));
        for (has_init, has_listener) in cases {
            let received = ours.recv().expect("receive").expect("was sent");
            let report = Report::Ready {
                has_init,
                has_listener,
                listeners: 1,
            };
            assert_eq!(received.report, report);
            assert_eq!(received.init.is_some(), has_init);
            assert_eq!(received.seccomp_listener.is_some(), has_listener);
            assert_eq!(received.tcp_listeners.len(), 1);
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
            Step::Listen,
            Step::WorkingDirectory,
            Step::Privileges,
            Step::Landlock,
            Step::Seccomp,
            Step::Execute,
        ];
        let all_steps = steps.map(|step| Report::Failed(step, i32::MIN));
        let ready = Report::Ready {
            has_init: true,
            has_listener: true,
            listeners: u8::MAX,
        };
        for report in [ready, failed(13)].into_iter().chain(all_steps) {
            let bytes = encode(&report).expect("encode");
            assert!(bytes.len() <= MAX_REPORT);
            assert_eq!(decode::<Report>(&bytes).ok(), Some(report));
        }
        assert!(decode::<Report>(b"").is_err());
        let mut unknown = encode(&failed(13)).expect("encode");
        unknown[1] = 20;
        assert!(decode::<Report>(&unknown).is_err());
    }
}
