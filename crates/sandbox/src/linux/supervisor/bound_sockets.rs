//! The socket files that sandboxed processes listen on.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::Resource;

use crate::Identity;
use crate::linux::nofollow;

/// The maximum number of files that are recorded for one sandbox, each with a descriptor of the
/// server. The oldest is forgotten first.
const MAX_FILES: usize = 64;

/// The number of files that are recorded for all sandboxes.
static RECORDED: AtomicUsize = AtomicUsize::new(0);

/// Returns the maximum of [`RECORDED`], so that starts never lack descriptors.
fn max_recorded() -> usize {
    let open_files = rustix::process::getrlimit(Resource::Nofile).current;
    let limit = open_files.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
    limit / 8
}

/// Socket files that were bound inside one sandbox.
#[derive(Debug, Default)]
pub(super) struct BoundSockets(VecDeque<BoundSocket>);

/// A socket file that a program of the sandbox bound.
#[derive(Debug)]
struct BoundSocket {
    identity: Identity,
    /// Keeps the inode, so that no other file gets its number. Connections are made through it.
    file: Arc<RecordedFile>,
}

/// A descriptor that counts in [`RECORDED`].
#[derive(Debug)]
pub(super) struct RecordedFile(OwnedFd);

impl RecordedFile {
    /// Fails with `ENFILE` if there are too many.
    fn new(file: OwnedFd, max: usize) -> Result<Self, Errno> {
        if RECORDED.fetch_add(1, Ordering::Relaxed) >= max {
            RECORDED.fetch_sub(1, Ordering::Relaxed);
            return Err(Errno::NFILE);
        }
        Ok(Self(file))
    }
}

impl Drop for RecordedFile {
    fn drop(&mut self) {
        RECORDED.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsRawFd for RecordedFile {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl BoundSockets {
    /// Fails with `ENFILE` if too many files are recorded for other sandboxes.
    pub(super) fn insert(&mut self, file: OwnedFd) -> Result<(), Errno> {
        let identity = nofollow::identity(&file)?;
        // A removed file can't be reached by a path any more.
        self.0
            .retain(|known| known.identity != identity && is_linked(&known.file.0));
        if self.0.len() == MAX_FILES {
            self.0.pop_front();
        }
        let file = Arc::new(RecordedFile::new(file, max_recorded())?);
        self.0.push_back(BoundSocket { identity, file });
        Ok(())
    }

    /// Returns the descriptor of the recorded file that `found` is. Fails with the error that a
    /// sandboxed process gets.
    pub(super) fn find(&self, found: &OwnedFd) -> Result<Arc<RecordedFile>, Errno> {
        let mode = rustix::fs::fstat(found)?.st_mode;
        if FileType::from_raw_mode(mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        let identity = nofollow::identity(found)?;
        let known = self.0.iter().find(|known| known.identity == identity);
        known
            .map(|known| Arc::clone(&known.file))
            .ok_or(Errno::PERM)
    }
}

fn is_linked(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    fn open(path: &Path) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).expect("open")
    }

    #[test]
    fn only_recorded_sockets_are_found() {
        let directory = tempfile::tempdir().expect("create directory");
        let path = |name: &str| directory.path().join(name);
        let mut bound = BoundSockets::default();
        let _own = UnixListener::bind(path("own")).expect("bind");
        let _other = UnixListener::bind(path("other")).expect("bind");
        bound.insert(open(&path("own"))).expect("insert");
        bound.find(&open(&path("own"))).expect("is recorded");
        let refused = bound.find(&open(&path("other"))).expect_err("is unknown");
        assert_eq!(refused, Errno::PERM);
        let refused = bound.find(&open(directory.path())).expect_err("no socket");
        assert_eq!(refused, Errno::CONNREFUSED);
        // Another socket in its place is another file.
        std::fs::rename(path("other"), path("own")).expect("rename");
        let refused = bound.find(&open(&path("own"))).expect_err("is unknown");
        assert_eq!(refused, Errno::PERM);
    }

    #[test]
    fn too_many_files_are_refused() {
        let open = || open(Path::new("/"));
        let before = RECORDED.load(Ordering::Relaxed);
        let file = RecordedFile::new(open(), before + 1).expect("is the first");
        let refused = RecordedFile::new(open(), before + 1).expect_err("is the second");
        assert_eq!(refused, Errno::NFILE);
        drop(file);
        assert_eq!(RECORDED.load(Ordering::Relaxed), before);
    }

    #[test]
    fn removed_and_oldest_files_are_forgotten() {
        let directory = tempfile::tempdir().expect("create directory");
        let path = |number: usize| directory.path().join(number.to_string());
        let mut bound = BoundSockets::default();
        let listen = |number| UnixListener::bind(path(number)).expect("bind");
        let listeners: Vec<_> = (0..=MAX_FILES).map(listen).collect();
        for number in 0..listeners.len() {
            bound.insert(open(&path(number))).expect("insert");
        }
        assert_eq!(bound.0.len(), MAX_FILES);
        assert!(bound.find(&open(&path(0))).is_err(), "is the oldest");
        std::fs::remove_file(path(1)).expect("remove");
        bound.insert(open(&path(0))).expect("insert");
        bound.insert(open(&path(0))).expect("insert again");
        assert_eq!(bound.0.len(), MAX_FILES);
        bound.find(&open(&path(2))).expect("is recorded");
    }
}
