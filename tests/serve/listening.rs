//! Places where it can't listen: one clear line, and exit code 1.

use outpost_testkit::Ended;

use crate::outpost;

/// One line on stderr that names the place, nothing on stdout, exit code 1.
fn refused(ended: &Ended, place: &str, words: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains(place), "{ended:?}");
    assert!(ended.stderr.contains(words), "{ended:?}");
    let reasons = ended.stderr.matches("(os error ").count();
    assert!(reasons <= 1, "it says it twice: {ended:?}");
}

async fn listen(url: &str) -> Ended {
    outpost().run(&["serve", "--listen", url]).await
}

#[tokio::test]
async fn a_port_in_use() {
    let server = outpost().start().await;
    let url = server.urls()[0].clone();
    refused(&listen(&url).await, server.address(), "in use");
    server.client().await.is_alive().await;
}

#[tokio::test]
async fn an_address_that_is_not_loopback() {
    for url in [
        "ws://0.0.0.0:0",
        "ws://192.0.2.1:7777",
        "ws://[::]:0",
        "ws://[2001:db8::1]:1",
    ] {
        let address = url.trim_start_matches("ws://");
        let ended = listen(url).await;
        refused(&ended, address, "loopback");
        assert!(
            ended.stderr.contains("authentication"),
            "it says why: {ended:?}"
        );
    }
}

#[tokio::test]
async fn a_path_of_a_live_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let url = format!("unix://{}", path.display());
    let server = outpost().listen(&url).start().await;
    refused(&listen(&url).await, &path.display().to_string(), "already");
    // It is still there, and still the first one's.
    let client = server.connect_to(&url).await;
    client.shake_hands().await;
    client.is_alive().await;
}

#[tokio::test]
async fn a_path_that_is_something_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").expect("a file");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    for path in [&file, &link, &folder.path().to_owned()] {
        let place = path.display().to_string();
        let ended = listen(&format!("unix://{place}")).await;
        refused(&ended, &place, "not a socket");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "precious");
}

#[tokio::test]
async fn a_path_that_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/socket").display().to_string();
    let ended = listen(&format!("unix://{missing}")).await;
    refused(&ended, &missing, "No such file or directory");
    // Not even root can make a file there.
    let ended = listen("unix:///proc/socket").await;
    refused(&ended, "/proc/socket", "os error");
    let long = format!("{}/{}", folder.path().display(), "x".repeat(200));
    let ended = listen(&format!("unix://{long}")).await;
    refused(&ended, &long, "");
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "nothing is left behind");
}

#[tokio::test]
async fn one_bad_place_among_good_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let url = format!("unix://{}", path.display());
    let args = ["serve", "--listen", "ws://127.0.0.1:0", "--listen", &url];
    let ended = outpost()
        .run(&[&args[..], &["--listen", "ws://0.0.0.0:0"]].concat())
        .await;
    refused(&ended, "0.0.0.0:0", "loopback");
    assert!(!path.exists(), "the socket before it is gone again");
}

#[tokio::test]
async fn what_is_no_place_at_all() {
    let no_places = [
        "",
        "x",
        "http://127.0.0.1:0",
        "ws://",
        "ws://127.0.0.1",
        "ws://127.0.0.1:x",
        "ws://127.0.0.1:70000",
        "ws://example.org:1",
        "unix://",
        "unix://relative",
        "unix:/x",
        "stdio://x",
    ];
    for url in no_places {
        let ended = listen(url).await;
        assert_eq!(ended.code, Some(2), "{url:?} {ended:?}");
        assert_eq!(ended.stdout, "", "{url:?}");
        assert!(ended.stderr.contains("--listen"), "{url:?} {ended:?}");
    }
}
