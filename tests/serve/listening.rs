//! Tests addresses that can't be listened on: one line and exit code 1.

use outpost_testkit::CommandOutput;

use crate::outpost;

/// Checks for one line on stderr that names the address, empty stdout and exit code 1.
fn check_listen_error(output: &CommandOutput, address: &str, message: &str) {
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.stdout, "", "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(output.stderr.contains(address), "{output:?}");
    assert!(output.stderr.contains(message), "{output:?}");
    let reasons = output.stderr.matches("(os error ").count();
    assert!(reasons <= 1, "it says it twice: {output:?}");
}

async fn listen(url: &str) -> CommandOutput {
    outpost().run(&["serve", "--listen", url]).await
}

#[tokio::test]
async fn port_in_use_is_an_error() {
    let server = outpost().start().await;
    let url = server.urls()[0].clone();
    check_listen_error(&listen(&url).await, server.address(), "in use");
    server.client().await.check_alive().await;
}

#[tokio::test]
async fn address_beyond_loopback_is_an_error() {
    for url in [
        "ws://0.0.0.0:0",
        "ws://192.0.2.1:7777",
        "ws://[::]:0",
        "ws://[2001:db8::1]:1",
    ] {
        let address = url.trim_start_matches("ws://");
        let refusal = format!("refusing to listen on {address} without authentication; ");
        check_listen_error(&listen(url).await, address, &refusal);
    }
}

#[tokio::test]
async fn path_of_a_live_server_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let url = format!("unix://{}", path.display());
    let server = outpost().listen(&url).start().await;
    check_listen_error(&listen(&url).await, &path.display().to_string(), "already");
    // The first server still listens there.
    let client = server.connect_to(&url).await;
    client.handshake().await;
    client.check_alive().await;
}

#[tokio::test]
async fn path_of_another_file_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").expect("a file");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    for path in [&file, &link, &dir.path().to_owned()] {
        let address = path.display().to_string();
        let output = listen(&format!("unix://{address}")).await;
        check_listen_error(&output, &address, "not a socket");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "precious");
}

#[tokio::test]
async fn unwritable_path_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = dir.path().join("missing/socket").display().to_string();
    let output = listen(&format!("unix://{missing}")).await;
    check_listen_error(&output, &missing, "No such file or directory");
    // Not even root can create a file there.
    let output = listen("unix:///proc/socket").await;
    check_listen_error(&output, "/proc/socket", "os error");
    let long = format!("{}/{}", dir.path().display(), "x".repeat(200));
    let output = listen(&format!("unix://{long}")).await;
    check_listen_error(&output, &long, "");
    let left = std::fs::read_dir(dir.path()).expect("a directory").count();
    assert_eq!(left, 0, "something is left");
}

#[tokio::test]
async fn one_invalid_listener_fails_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let url = format!("unix://{}", path.display());
    let args = ["serve", "--listen", "ws://127.0.0.1:0", "--listen", &url];
    let output = outpost()
        .run(&[&args[..], &["--listen", "ws://0.0.0.0:0"]].concat())
        .await;
    check_listen_error(&output, "0.0.0.0:0", "loopback");
    assert!(!path.exists(), "the first socket was removed again");
}

#[tokio::test]
async fn unknown_scheme_is_an_error() {
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
        let output = listen(url).await;
        assert_eq!(output.code, Some(2), "{url:?} {output:?}");
        assert_eq!(output.stdout, "", "{url:?}");
        assert!(output.stderr.contains("--listen"), "{url:?} {output:?}");
    }
}
