//! A unix socket and its file, private to the server's user.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use super::ListenError;

/// A bound unix socket. Its file is removed on drop, unless another server replaced it.
pub(super) struct UnixSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// The file of a unix socket, identified by device and inode.
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl UnixSocket {
    /// Binds the socket. Replaces the file of a server that is gone.
    pub(super) fn bind(path: &Path) -> Result<Self, ListenError> {
        Self::bind_with(path, File::lock)
    }

    /// Binds the socket with a lock on its path. Without it, two servers that find the same stale file
    /// would both replace it, and one of them would be out of reach.
    fn bind_with(path: &Path, lock: fn(&File) -> io::Result<()>) -> Result<Self, ListenError> {
        let failed = |os| ListenError::Unix {
            path: path.to_owned(),
            os,
        };
        let _lock = BindLock::take(path, lock).map_err(failed)?;
        remove_stale_socket(path)?;
        bind_private(path).map_err(failed)
    }

    /// Accepts a connection of the server's own user; `None` if it is another user's.
    pub(super) async fn accept(&self) -> io::Result<Option<UnixStream>> {
        let (stream, _) = self.listener.accept().await?;
        Ok(is_same_user(&stream).then_some(stream))
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Binds the socket again if its file is gone, as after a cleanup of temporary files. A directory
    /// that is gone too is created for this user alone. Returns whether it was bound again. Does not
    /// wait: if another process has the lock, this fails and can be repeated.
    pub(super) fn restore(&mut self) -> Result<bool, ListenError> {
        if self.file.is_ours() {
            return Ok(false);
        }
        let path = self.file.path.clone();
        if let Some(parent) = path.parent() {
            // A failure is that of the check, too.
            let _ = DirBuilder::new().mode(0o700).create(parent);
            check_directory(parent).map_err(|os| ListenError::Unix {
                path: path.clone(),
                os,
            })?;
        }
        *self = UnixSocket::bind_with(&path, |file| Ok(file.try_lock()?))?;
        Ok(true)
    }
}

impl SocketFile {
    fn is_ours(&self) -> bool {
        let is_same =
            |metadata: fs::Metadata| (metadata.dev(), metadata.ino()) == (self.device, self.inode);
        fs::symlink_metadata(&self.path).is_ok_and(is_same)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "removing the socket failed");
        }
    }
}

/// A lock on a path while it is bound. Its file is removed on drop.
struct BindLock {
    path: PathBuf,
    /// Closing it releases the lock.
    _file: File,
}

impl BindLock {
    /// Takes the lock with `lock`. Others hold it for a few system calls only.
    fn take(socket: &Path, lock: fn(&File) -> io::Result<()>) -> io::Result<Self> {
        let path = with_suffix(socket, ".lock");
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&path)?;
            let metadata = file.metadata()?;
            // Another user could hold its lock forever.
            if metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            lock(&file)?;
            // The previous holder removed the file that was opened.
            let is_same = |named: fs::Metadata| {
                (named.dev(), named.ino()) == (metadata.dev(), metadata.ino())
            };
            if fs::symlink_metadata(&path).is_ok_and(is_same) {
                return Ok(BindLock { path, _file: file });
            }
        }
    }
}

impl Drop for BindLock {
    fn drop(&mut self) {
        // A file that stays is locked again by the next server.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes a socket file without a listener. Fails if the path is anything else.
fn remove_stale_socket(path: &Path) -> Result<(), ListenError> {
    let failed = |os| ListenError::Unix {
        path: path.to_owned(),
        os,
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match try_connect(path) {
        Ok(()) => Err(ListenError::SocketInUse(path.to_owned())),
        // The queue of a listener is full.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(ListenError::SocketInUse(path.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Connects without waiting.
fn try_connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

/// Fails if another user could replace files in a directory: it belongs to another user than root, or
/// others may write to it and it is not sticky.
fn check_directory(directory: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let metadata = fs::metadata(directory)?;
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = [0, own].contains(&metadata.uid());
    let is_private = metadata.mode() & WRITABLE_BY_OTHERS == 0 || metadata.mode() & STICKY != 0;
    if is_trusted && is_private {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "other users can replace files in its directory; remove their write permission",
    ))
}

/// Binds with mode 0600 from the start: creates the socket under a temporary name, sets its mode, and
/// links it to its path. Fails if another program has bound the path meanwhile: a rename would replace it.
fn bind_private(path: &Path) -> io::Result<UnixSocket> {
    let temporary = with_suffix(path, &format!(".{}", std::process::id()));
    let listener = UnixListener::bind(&temporary)?;
    let linked = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&temporary))
        .and_then(|metadata| fs::hard_link(&temporary, path).map(|()| metadata));
    let _ = fs::remove_file(&temporary);
    let metadata = linked?;
    let file = SocketFile {
        path: path.to_owned(),
        device: metadata.dev(),
        inode: metadata.ino(),
    };
    Ok(UnixSocket { listener, file })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns whether the peer runs as the server's user.
fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test]
    async fn socket_of_another_program_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = bind_private(&path).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        other.accept().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn concurrent_servers_replace_a_stale_socket_once() {
        const SERVERS: usize = 4;
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let path = dir.path().join(round.to_string());
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            let (barrier, runtime) = (Barrier::new(SERVERS), Handle::current());
            let bind = || {
                let _runtime = runtime.enter();
                barrier.wait();
                UnixSocket::bind(&path)
            };
            let bound: Vec<_> = std::thread::scope(|scope| {
                let threads = [(); SERVERS].map(|()| scope.spawn(bind));
                threads.map(|thread| thread.join().unwrap()).into()
            });
            let (listening, rejected): (Vec<_>, Vec<_>) =
                bound.into_iter().partition(Result::is_ok);
            assert_eq!(listening.len(), 1, "round {round}");
            for rejected in rejected.into_iter().filter_map(Result::err) {
                assert!(
                    matches!(rejected, ListenError::SocketInUse(_)),
                    "{rejected}"
                );
            }
            let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "{left:?}");
            drop(listening);
        }
    }

    #[tokio::test]
    async fn removed_socket_is_bound_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let mut socket = UnixSocket::bind(&path).unwrap();
        assert!(!socket.restore().unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert!(socket.restore().unwrap());
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        let (connected, accepted) = tokio::join!(UnixStream::connect(&path), socket.accept());
        assert!(connected.is_ok() && accepted.unwrap().is_some());

        fs::remove_file(&path).unwrap();
        let other = UnixSocket::bind(&path).unwrap();
        let rejected = socket.restore().unwrap_err();
        assert!(
            matches!(rejected, ListenError::SocketInUse(_)),
            "{rejected}"
        );
        drop(other);
        assert!(socket.restore().unwrap());
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn restore_waits_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let mut socket = UnixSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let lock = BindLock::take(&path, File::lock).unwrap();
        let rejected = socket.restore().unwrap_err();
        assert!(matches!(rejected, ListenError::Unix { .. }), "{rejected}");
        drop(lock);
        // A listener with a full queue.
        let other = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        other.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        other.listen(0).unwrap();
        try_connect(&path).unwrap();
        let rejected = socket.restore().unwrap_err();
        assert!(
            matches!(rejected, ListenError::SocketInUse(_)),
            "{rejected}"
        );
    }

    #[tokio::test]
    async fn socket_is_not_restored_where_others_may_write() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let mut socket = UnixSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let set_mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode));
        set_mode(0o777).unwrap();
        let rejected = socket.restore().unwrap_err();
        assert!(rejected.to_string().contains("directory"), "{rejected}");
        assert!(!path.exists());
        set_mode(0o1777).unwrap();
        assert!(socket.restore().unwrap());
    }
}
