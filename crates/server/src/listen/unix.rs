//! WebSocket over a unix socket.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream as StdUnixStream,
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use super::{ListenError, tcp::ACCEPT_RETRY_DELAY};
use crate::{Server, http};

pub(super) struct UnixEndpoint {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket file. Removed on drop, unless another server replaced it.
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl UnixEndpoint {
    pub(super) fn bind(path: &Path) -> Result<Self, ListenError> {
        remove_stale_socket(path)?;
        bind_private(path).map_err(|os| ListenError::Unix {
            path: path.to_owned(),
            os,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("unix://{}", self.file.path.display())
    }

    pub(super) async fn serve(self, server: Server) {
        loop {
            let accepted = tokio::select! {
                () = server.state.ending.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) if is_same_user(&stream) => http::accept(&server.state, stream),
                Ok(_) => tracing::warn!("connection rejected: peer is another user"),
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
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
    match StdUnixStream::connect(path) {
        Ok(_) => Err(ListenError::SocketInUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Binds with mode 0600 from the start: creates the socket under a temporary name, sets its
/// mode, and renames it.
fn bind_private(path: &Path) -> io::Result<UnixEndpoint> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let listener = UnixListener::bind(&temporary)?;
    let moved = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&temporary))
        .and_then(|metadata| fs::rename(&temporary, path).map(|()| metadata.ino()));
    match moved {
        Ok(inode) => Ok(UnixEndpoint {
            listener,
            file: SocketFile {
                path: path.to_owned(),
                inode,
            },
        }),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

/// Returns whether the peer runs as the server's user.
fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "removing the socket failed");
        }
    }
}
