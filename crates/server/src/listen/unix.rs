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

use super::{ListenError, tcp::REST};
use crate::{Server, http};

pub(super) struct UnixPlace {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket in the file system, which goes when we go, unless somebody has
/// put another one in its place.
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl UnixPlace {
    pub(super) fn bind(path: &Path) -> Result<Self, ListenError> {
        make_way(path)?;
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
                () = server.ending().cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) if is_ours(&stream) => http::accept(&server, stream),
                Ok(_) => tracing::warn!("refused a connection of another user"),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}

/// Removes a socket that nobody listens on any more, and nothing else.
fn make_way(path: &Path) -> Result<(), ListenError> {
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

/// Binds so that nobody but the owner could ever connect: the socket is made
/// under another name, closed to others, and only then moved to its place.
fn bind_private(path: &Path) -> io::Result<UnixPlace> {
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let listener = UnixListener::bind(&hidden)?;
    let moved = fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&hidden))
        .and_then(|metadata| fs::rename(&hidden, path).map(|()| metadata.ino()));
    match moved {
        Ok(inode) => Ok(UnixPlace {
            listener,
            file: SocketFile {
                path: path.to_owned(),
                inode,
            },
        }),
        Err(error) => {
            let _ = fs::remove_file(&hidden);
            Err(error)
        }
    }
}

/// Whether the peer runs as the same user as we do.
fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "failed to remove the socket");
        }
    }
}
