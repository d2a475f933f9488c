//! Locks that outlast the server.
//!
//! Who is killed loses its locks, and what it has left running would lose the places that its walls stand
//! on to the next one who tidies up. So bubblewrap's first process, the last to go, has them as well, in
//! one descriptor: a socket to which the locked directories are on their way, and never arrive.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// How many descriptors of ours may be on their way. The system counts all of a user's together, and
/// refuses more than somebody may have open, which may be as few as 1,024.
const MOST: usize = 256;

/// How many travel in one message.
const AT_ONCE: usize = 64;

/// Those that there are, by what they keep. Processes that need the same have the same one.
#[derive(Debug, Default)]
pub(super) struct Keepsakes(Mutex<HashMap<Vec<usize>, Weak<Keepsake>>>);

/// Keeps some locks for as long as its socket is open anywhere.
#[derive(Debug)]
pub(super) struct Keepsake {
    socket: OwnedFd,
    count: usize,
}

impl Keepsakes {
    /// The one for these, each known by a number that nobody else has for as long as it is kept. None if
    /// there is nothing to keep, or too much: it is only for when we are killed.
    pub(super) fn of(
        &self,
        locked: &[(usize, BorrowedFd<'_>)],
    ) -> io::Result<Option<Arc<Keepsake>>> {
        if locked.is_empty() {
            return Ok(None);
        }
        let key: Vec<_> = locked.iter().map(|(number, _)| *number).collect();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(known));
        }
        all.retain(|_, one| one.strong_count() > 0);
        let living = all.values().filter_map(Weak::upgrade);
        let on_their_way: usize = living.map(|one| one.count).sum();
        let made = match on_their_way + locked.len() > MOST {
            true => Err(Errno::TOOMANYREFS),
            false => keep(locked),
        };
        match made {
            Ok(socket) => {
                let count = locked.len();
                let made = Arc::new(Keepsake { socket, count });
                all.insert(key, Arc::downgrade(&made));
                Ok(Some(made))
            }
            Err(Errno::TOOMANYREFS) => {
                tracing::warn!("the places of a confined process are held by this server alone");
                Ok(None)
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Keepsake {
    /// For whoever is to keep it.
    pub(super) fn copy(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

fn keep(locked: &[(usize, BorrowedFd<'_>)]) -> Result<OwnedFd, Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (from, to) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    for some in locked.chunks(AT_ONCE) {
        let some: Vec<_> = some.iter().map(|(_, directory)| *directory).collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&some));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(&from, &[IoSlice::new(b"kept")], &mut control, flags)?;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::FlockOperation;

    use super::*;

    #[test]
    fn a_lock_is_there_for_as_long_as_somebody_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || std::fs::File::open(folder.path()).expect("it opens");
        let (ours, other) = (open(), open());
        let take = |file: &std::fs::File, how| rustix::fs::flock(file, how);
        take(&ours, FlockOperation::NonBlockingLockShared).expect("nobody has it");
        let all = Keepsakes::default();
        let kept = all.of(&[(1, ours.as_fd())]).expect("it is made");
        let theirs = kept.as_ref().map(|kept| kept.copy().expect("a copy"));
        drop((ours, kept));
        let alone = FlockOperation::NonBlockingLockExclusive;
        assert_eq!(take(&other, alone), Err(Errno::WOULDBLOCK));
        drop(theirs);
        assert_eq!(take(&other, alone), Ok(()));
    }

    #[test]
    fn those_who_need_the_same_have_the_same_and_there_is_a_bound() {
        let file = tempfile::tempfile().expect("a file");
        let some = |first: usize, count| -> Vec<_> {
            (first..first + count)
                .map(|number| (number, file.as_fd()))
                .collect()
        };
        let all = Keepsakes::default();
        let one = all
            .of(&some(0, 200))
            .expect("it is made")
            .expect("there is room");
        let same = all.of(&some(0, 200)).expect("it is there").expect("it is");
        assert!(Arc::ptr_eq(&one, &same));
        assert!(
            all.of(&some(1000, 100)).expect("no error").is_none(),
            "too many"
        );
        drop((one, same));
        assert!(all.of(&some(1000, 100)).expect("no error").is_some());
        assert!(all.of(&[]).expect("no error").is_none());
    }
}
