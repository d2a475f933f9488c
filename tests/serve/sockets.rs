//! Tests the unix socket file.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use outpost_testkit::{Transport, sh};
use rustix::process::Signal;

use crate::outpost;

#[tokio::test]
async fn socket_is_accessible_to_its_owner_only() {
    let server = outpost().on(Transport::Unix).start().await;
    let metadata = fs::symlink_metadata(server.socket_path()).expect("a socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let others = fs::read_dir(server.dir()).expect("a directory").count();
    assert_eq!(others, 1, "another file is left");
}

#[tokio::test]
async fn socket_is_removed_at_exit() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = outpost().on(Transport::Unix).start().await;
        let path = server.socket_path().to_owned();
        let client = server.client().await;
        client.start(sh("p", "exec sleep 1000")).await;
        assert!(path.exists());
        server.signal(signal);
        assert_eq!(server.wait().await.code, Some(0));
        assert!(!path.exists(), "{signal:?}");
        drop(client);
    }
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    // A closed listener leaves its socket file.
    drop(UnixListener::bind(&path).expect("a listener"));
    assert!(path.exists());
    let url = format!("unix://{}", path.display());
    let server = outpost().listen(&url).start().await;
    let client = server.connect_to(&url).await;
    client.handshake().await;
    client.check_alive().await;
    let mode = fs::symlink_metadata(&path)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[tokio::test]
async fn socket_of_a_killed_server_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let url = format!("unix://{}", path.display());
    let mut killed = outpost().listen(&url).start().await;
    killed.signal(Signal::KILL);
    killed.wait().await;
    assert!(path.exists());
    let server = outpost().listen(&url).start().await;
    let client = server.connect_to(&url).await;
    client.handshake().await;
}

#[tokio::test]
async fn foreign_socket_is_not_removed_at_exit() {
    let mut server = outpost().on(Transport::Unix).start().await;
    let path = server.socket_path().to_owned();
    // Replaced at once: the server would bind a path again that does not exist.
    let other = path.with_extension("other");
    let _other = UnixListener::bind(&other).expect("another listener");
    fs::rename(&other, &path).expect("it replaces the socket");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().await.code, Some(0));
    assert!(path.exists());
}
