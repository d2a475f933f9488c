//! Access to a process that made a system call: its descriptors, memory and directories.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use crate::linux::{nofollow, sys};

/// The size of `struct sockaddr_storage`, the longest address.
const MAX_ADDRESS: usize = 128;

/// The size of `struct sockaddr_un`.
const MAX_UNIX_ADDRESS: usize = 110;

/// PIDFD_THREAD, for pidfds of threads. Linux 6.9.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// How often a path is resolved again if a directory is moved meanwhile.
const MAX_RETRIES: usize = 8;

/// A thread that made a system call. It may have ended, and its id may belong to another thread:
/// whatever is read must not be used before the call was found to be still waiting.
#[derive(Debug)]
pub(super) struct Target {
    thread: u32,
}

/// A path as a sandboxed process sees it.
#[derive(Debug)]
pub(super) struct TargetPath {
    root: OwnedFd,
    path: PathBuf,
}

/// Returns whether this process can access descriptors and memory of process `pid`, which has this
/// descriptor.
pub(in crate::linux) fn is_accessible(pid: u32, descriptor: i32) -> bool {
    let target = Target::new(pid);
    let number = u64::from(descriptor.cast_unsigned());
    target.duplicate(number).is_ok() && File::open(target.proc("mem")).is_ok()
}

impl Target {
    pub(super) fn new(thread: u32) -> Self {
        Self { thread }
    }

    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.thread).into()
    }

    /// Duplicates the descriptor that a system call got as an argument.
    pub(super) fn duplicate(&self, argument: u64) -> Result<OwnedFd, Errno> {
        // The kernel ignores the upper half too.
        let number = argument as u32;
        let pidfd = match rustix::process::pidfd_open(self.pid(self.thread)?, PIDFD_THREAD) {
            // An older kernel has pidfds only for whole processes. Their threads normally share their
            // descriptors.
            Err(Errno::INVAL) => {
                let pid = self.pid(self.thread_group()?)?;
                rustix::process::pidfd_open(pid, PidfdFlags::empty())?
            }
            opened => opened?,
        };
        let flags = PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(pidfd, number.cast_signed(), flags)
    }

    fn pid(&self, number: u32) -> Result<Pid, Errno> {
        Pid::from_raw(number.cast_signed()).ok_or(Errno::SRCH)
    }

    fn thread_group(&self) -> Result<u32, Errno> {
        let status = std::fs::read_to_string(self.proc("status")).map_err(|_| Errno::SRCH)?;
        let mut lines = status.lines();
        let group = lines.find_map(|line| line.strip_prefix("Tgid:"));
        group
            .and_then(|group| group.trim().parse().ok())
            .ok_or(Errno::SRCH)
    }

    /// Returns the file of a unix socket, if it has one and was created in the network namespace of
    /// the thread.
    pub(super) fn own_socket_file(&self, socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
        let namespace = self.proc("ns/net");
        let own = rustix::fs::stat(&namespace)?;
        let namespace = sys::network_namespace(socket)?;
        let created_in = nofollow::identity(&namespace)?;
        if (own.st_dev, own.st_ino) != (created_in.device, created_in.inode) {
            return Ok(None);
        }
        match sys::socket_file(socket) {
            // It is unbound, or has an abstract name.
            Err(Errno::NOENT) => Ok(None),
            file => file.map(Some),
        }
    }

    /// Copies the socket address that `connect` got.
    pub(super) fn read_address(&self, pointer: u64, length: u64) -> Result<Vec<u8>, Errno> {
        // An `int` for the kernel.
        let length = usize::try_from((length as u32).cast_signed()).map_err(|_| Errno::INVAL)?;
        if length > MAX_ADDRESS {
            return Err(Errno::INVAL);
        }
        let memory = File::open(self.proc("mem"));
        let memory = memory.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let mut address = vec![0; length];
        let read = memory.read_exact_at(&mut address, pointer);
        read.map_err(|_| Errno::FAULT)?;
        Ok(address)
    }

    /// Returns a path relative to the thread's directories.
    pub(super) fn path(&self, path: &Path) -> Result<TargetPath, Errno> {
        let directory = match path.is_absolute() {
            true => PathBuf::new(),
            false => {
                let target = rustix::fs::readlink(self.proc("cwd"), Vec::new())?;
                OsStr::from_bytes(target.as_bytes()).into()
            }
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(TargetPath {
            root: rustix::fs::open(self.proc("root"), flags, Mode::empty())?,
            path: directory.join(path),
        })
    }
}

impl TargetPath {
    /// Resolves the path inside the thread's root directory.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.root, &self.path, flags, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 0..MAX_RETRIES {
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
            opened = open();
        }
        opened
    }
}

/// An address of a unix socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnixAddress<'a> {
    /// A name in the network namespace of the socket.
    Abstract,
    /// The path of a socket file.
    Path(&'a Path),
}

impl<'a> UnixAddress<'a> {
    /// Parses `struct sockaddr_un`, see unix(7).
    pub(super) fn parse(address: &'a [u8]) -> Result<Self, Errno> {
        let family = (libc::AF_UNIX as u16).to_ne_bytes();
        let Some(name) = address.strip_prefix(&family) else {
            return Err(Errno::INVAL);
        };
        if name.is_empty() || address.len() > MAX_UNIX_ADDRESS {
            return Err(Errno::INVAL);
        }
        let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(if path.is_empty() {
            UnixAddress::Abstract
        } else {
            UnixAddress::Path(Path::new(OsStr::from_bytes(path)))
        })
    }

    /// Returns the address of a socket file.
    pub(super) fn encode(path: &str) -> Vec<u8> {
        let family = (libc::AF_UNIX as u16).to_ne_bytes();
        [&family, path.as_bytes(), b"\0"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_addresses_are_parsed_like_the_kernel_does() {
        let family = [1, 0];
        let parse = |name: &[u8]| {
            let address = [&family, name].concat();
            UnixAddress::parse(&address).map(|address| match address {
                UnixAddress::Abstract => None,
                UnixAddress::Path(path) => Some(path.to_owned()),
            })
        };
        assert_eq!(parse(b""), Err(Errno::INVAL));
        assert_eq!(parse(b"\0"), Ok(None));
        assert_eq!(parse(b"\0name"), Ok(None));
        assert_eq!(parse(b"/run/x"), Ok(Some("/run/x".into())));
        assert_eq!(parse(b"x\0/run/y"), Ok(Some("x".into())));
        assert!(parse(&[b'x'; 108]).is_ok());
        assert_eq!(parse(&[b'x'; 109]), Err(Errno::INVAL));
        assert_eq!(UnixAddress::parse(&[1]), Err(Errno::INVAL));
        assert_eq!(UnixAddress::parse(&[2, 0, 0]), Err(Errno::INVAL));
        let encoded = UnixAddress::encode("/proc/self/fd/3");
        let path = Path::new("/proc/self/fd/3");
        assert_eq!(UnixAddress::parse(&encoded), Ok(UnixAddress::Path(path)));
    }

    #[test]
    fn own_process_can_be_accessed() {
        let pid = std::process::id();
        assert!(is_accessible(pid, 0));
        assert!(!is_accessible(pid, 1 << 20), "no such descriptor");
    }
}
