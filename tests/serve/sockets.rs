//! The unix socket as a file.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use outpost_testkit::{Transport, sh};
use rustix::process::Signal;

use crate::outpost;

#[tokio::test]
async fn the_socket_is_its_owners_alone() {
    let server = outpost().on(Transport::Unix).start().await;
    let metadata = fs::symlink_metadata(server.socket_path()).expect("a socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let others = fs::read_dir(server.folder()).expect("a folder").count();
    assert_eq!(others, 1, "nothing else was left beside it");
}

#[tokio::test]
async fn the_socket_goes_with_the_server() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = outpost().on(Transport::Unix).start().await;
        let path = server.socket_path().to_owned();
        let client = server.client().await;
        client.start(sh("p", "exec sleep 1000")).await;
        assert!(path.exists());
        server.signal(signal);
        assert_eq!(server.ended().await.code, Some(0));
        assert!(!path.exists(), "{signal:?}");
        drop(client);
    }
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    // A listener that is gone leaves its file.
    drop(UnixListener::bind(&path).expect("a listener"));
    assert!(path.exists());
    let url = format!("unix://{}", path.display());
    let server = outpost().listen(&url).start().await;
    let client = server.connect_to(&url).await;
    client.shake_hands().await;
    client.is_alive().await;
    let mode = fs::symlink_metadata(&path)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[tokio::test]
async fn a_socket_of_a_server_that_was_killed_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let url = format!("unix://{}", path.display());
    let mut killed = outpost().listen(&url).start().await;
    killed.signal(Signal::KILL);
    killed.ended().await;
    assert!(path.exists());
    let server = outpost().listen(&url).start().await;
    let client = server.connect_to(&url).await;
    client.shake_hands().await;
}

#[tokio::test]
async fn somebody_elses_socket_is_left_alone_at_the_end() {
    let mut server = outpost().on(Transport::Unix).start().await;
    let path = server.socket_path().to_owned();
    fs::remove_file(&path).expect("its socket");
    let _other = UnixListener::bind(&path).expect("another listener");
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.code, Some(0));
    assert!(path.exists());
}
