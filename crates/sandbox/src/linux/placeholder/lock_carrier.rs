//! Keeps locks of placeholders when the server is killed.
//!
//! A killed server loses its locks, and another server could then remove placeholders that leftover
//! processes still need. So bubblewrap's first process, which exits last, inherits one descriptor that
//! holds all locks: a socket with the locked directories in its receive queue, never received.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::Resource;

use crate::linux::helper::{MAX_FDS, send_fds, socket_pair};

/// The lowest and the highest maximum number of descriptors in flight.
const IN_FLIGHT: std::ops::RangeInclusive<usize> = 256..=16_384;

/// Returns the maximum number of descriptors in flight. The kernel limits their number per user to the
/// limit of open files, which may be as low as 1,024. A quarter of it is ours.
pub(super) fn max_in_flight() -> usize {
    let open_files = rustix::process::getrlimit(Resource::Nofile).current;
    let open_files = open_files.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    (open_files / 4).clamp(*IN_FLIGHT.start(), *IN_FLIGHT.end())
}

/// The existing carriers by the locks they hold. Processes with the same placeholders share one.
#[derive(Debug, Default)]
pub(super) struct LockCarriers(Mutex<HashMap<Vec<usize>, Weak<LockCarrier>>>);

/// Holds locks while any copy of its socket is open.
#[derive(Debug)]
pub(super) struct LockCarrier {
    pub(super) socket: OwnedFd,
    count: usize,
}

impl LockCarriers {
    /// Returns the carrier for these locks. Each lock has a number that is unique while it is held.
    ///
    /// Returns none if there are no locks.
    ///
    /// # Errors
    /// `ETOOMANYREFS` if there are more than `limit` locks in all carriers, or more than the kernel allows.
    pub(super) fn get_or_create(
        &self,
        locks: &[(usize, BorrowedFd<'_>)],
        limit: usize,
    ) -> Result<Option<Arc<LockCarrier>>, Errno> {
        if locks.is_empty() {
            return Ok(None);
        }
        let key: Vec<_> = locks.iter().map(|(number, _)| *number).collect();
        let mut carriers = self.0.lock();
        if let Some(carrier) = carriers.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(carrier));
        }
        carriers.retain(|_, carrier| carrier.strong_count() > 0);
        let live = carriers.values().filter_map(Weak::upgrade);
        let in_flight: usize = live.map(|carrier| carrier.count).sum();
        if in_flight + locks.len() > limit {
            return Err(Errno::TOOMANYREFS);
        }
        let (socket, count) = (park(locks)?, locks.len());
        let carrier = Arc::new(LockCarrier { socket, count });
        carriers.insert(key, Arc::downgrade(&carrier));
        Ok(Some(carrier))
    }
}

/// Sends the locked directories to a socket and returns it.
fn park(locks: &[(usize, BorrowedFd<'_>)]) -> Result<OwnedFd, Errno> {
    let (sender, receiver) = socket_pair()?;
    for chunk in locks.chunks(MAX_FDS) {
        let directories: Vec<_> = chunk.iter().map(|(_, directory)| *directory).collect();
        send_fds(&sender, b"lock", &directories)?;
    }
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::FlockOperation;

    use super::*;

    #[test]
    fn lock_is_held_while_a_copy_is_open() {
        let directory = tempfile::tempdir().expect("create directory");
        let open = || std::fs::File::open(directory.path()).expect("open");
        let (locked, other) = (open(), open());
        let flock = |file: &std::fs::File, operation| rustix::fs::flock(file, operation);
        flock(&locked, FlockOperation::NonBlockingLockShared).expect("lock");
        let carriers = LockCarriers::default();
        let carrier = carriers.get_or_create(&[(1, locked.as_fd())], 1);
        let carrier = carrier.expect("create").expect("within the limit");
        let copy = carrier.socket.try_clone().expect("clone");
        drop((locked, carrier));
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        assert_eq!(flock(&other, exclusive), Err(Errno::WOULDBLOCK));
        drop(copy);
        assert_eq!(flock(&other, exclusive), Ok(()));
    }

    #[test]
    fn carriers_are_shared_and_bounded() {
        let file = tempfile::tempfile().expect("create file");
        let locks = |first: usize, count| -> Vec<_> {
            (first..first + count)
                .map(|number| (number, file.as_fd()))
                .collect()
        };
        let carriers = LockCarriers::default();
        let get = |first, count| carriers.get_or_create(&locks(first, count), 256);
        let first = get(0, 200).expect("within the limit");
        let same = get(0, 200).expect("exists");
        assert!(Arc::ptr_eq(
            &first.expect("has locks"),
            &same.expect("has locks")
        ));
        let first = get(0, 200).expect("exists again");
        let error = get(1000, 100).expect_err("exceeds the limit");
        assert_eq!(error, Errno::TOOMANYREFS);
        drop(first);
        assert!(get(1000, 100).expect("within the limit").is_some());
        assert!(get(0, 0).expect("nothing to hold").is_none());
    }
}
