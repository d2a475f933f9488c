//! One inotify instance and the watches of the kernel that it holds.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::permits::{Permit, PermitSource};
use super::{WatchError, WatchKey};

/// Space for many events with short names, and for at least one with the longest name.
const BUFFER_BYTES: usize = 64 * 1024;

/// A watch descriptor of the kernel, which identifies an inode while it is watched.
pub(super) type Descriptor = i32;

/// Events that change which file a name leads to.
pub(super) const NAME_CHANGES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// Events of a watched file or directory itself after which its path may lead elsewhere.
pub(super) const SELF_GONE: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT);

/// The events of a directory that paths lead through.
pub(super) const THROUGH: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// The events of a file or directory whose content is watched.
pub(super) const CONTENT: WatchFlags = THROUGH
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::EXCL_UNLINK);

/// An event of the kernel.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) descriptor: Descriptor,
    pub(super) flags: ReadFlags,
    /// The entry of the watched directory; none if the event is about the watched file itself.
    pub(super) name: Option<OsString>,
}

/// An inotify instance. Several watches share a descriptor of the same inode, because the kernel
/// returns the same one for all of them.
#[derive(Debug)]
pub(super) struct Inotify {
    instance: OwnedFd,
    watched: HashMap<Descriptor, Watched>,
    limit: usize,
    permits: PermitSource,
    _permit: Permit,
}

/// A watched file or directory.
#[derive(Debug)]
struct Watched {
    users: Vec<WatchKey>,
    _permit: Permit,
}

impl Inotify {
    pub(super) fn new(limit: usize, permits: PermitSource) -> Result<Self, WatchError> {
        let permit = permits.instance().ok_or(WatchError::NoInstanceLeft)?;
        let instance = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        Ok(Inotify {
            instance: instance.map_err(|errno| match errno {
                Errno::MFILE => WatchError::TooManyInstances,
                errno => errno.into(),
            })?,
            watched: HashMap::new(),
            limit,
            permits,
            _permit: permit,
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.instance.as_fd()
    }

    /// Watches a path for a user, besides the events that it is watched for already. Follows no
    /// symbolic link at its end.
    pub(super) fn add(
        &mut self,
        path: &Path,
        events: WatchFlags,
        user: WatchKey,
    ) -> Result<Descriptor, WatchError> {
        let flags = events | WatchFlags::MASK_ADD | WatchFlags::DONT_FOLLOW;
        let descriptor = match inotify::add_watch(&self.instance, path, flags) {
            Err(Errno::NOSPC) => return Err(WatchError::TooManyKernelWatches),
            added => added?,
        };
        if let Some(watched) = self.watched.get_mut(&descriptor) {
            if !watched.users.contains(&user) {
                watched.users.push(user);
            }
            return Ok(descriptor);
        }
        let limit = self.limit;
        let permit = match self.watched.len() < limit {
            true => self.permits.directory().ok_or(WatchError::NoDirectoryLeft),
            false => Err(WatchError::TooManyDirectories { limit }),
        };
        let permit = permit.inspect_err(|_| {
            let _ = inotify::remove_watch(&self.instance, descriptor);
        })?;
        let watched = Watched {
            users: vec![user],
            _permit: permit,
        };
        self.watched.insert(descriptor, watched);
        Ok(descriptor)
    }

    /// Ends a user's use of a descriptor, and the watch if there is no other user.
    pub(super) fn release(&mut self, descriptor: Descriptor, user: WatchKey) {
        let Some(watched) = self.watched.get_mut(&descriptor) else {
            return;
        };
        watched.users.retain(|other| *other != user);
        if watched.users.is_empty() {
            self.watched.remove(&descriptor);
            // Fails if the inode is gone.
            let _ = inotify::remove_watch(&self.instance, descriptor);
        }
    }

    /// The users of a descriptor.
    pub(super) fn users(&self, descriptor: Descriptor) -> Vec<WatchKey> {
        let watched = self.watched.get(&descriptor);
        watched.map_or_else(Vec::new, |watched| watched.users.clone())
    }

    /// Forgets a descriptor that the kernel has removed.
    pub(super) fn forget(&mut self, descriptor: Descriptor) {
        self.watched.remove(&descriptor);
    }

    /// Reads the events that are available now, at most one buffer of them.
    pub(super) fn read(&self) -> Vec<Event> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.instance, &mut buffer);
        let mut events = Vec::new();
        // Fails with EAGAIN if there is none.
        while let Ok(event) = reader.next() {
            events.push(Event {
                descriptor: event.wd(),
                flags: event.events(),
                name: event
                    .file_name()
                    .map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()),
            });
            if reader.is_buffer_empty() {
                break;
            }
        }
        events
    }
}
