//! Tests how a server announces its addresses.

use outpost_testkit::{Start, Transport, sh};
use serde_json::json;

use crate::outpost;

#[tokio::test]
async fn stdout_has_only_the_url_line() {
    let mut server = outpost().args(&["--log-level", "trace"]).start().await;
    let client = server.client().await;
    client.run(sh("p", "echo out; echo err >&2")).await;
    client.start_fails(Start::new("q", &["/no/such"])).await;
    client.send_text("garbage").await;
    client.error_without_id(0).await;
    drop(client);
    server.signal(rustix::process::Signal::TERM);
    let output = server.wait().await;
    let address = output
        .stdout
        .strip_prefix("ws://127.0.0.1:")
        .expect("a URL");
    let port = address.strip_suffix('\n').expect("a whole line");
    assert!(
        port.parse::<u16>().is_ok_and(|port| port > 0),
        "{:?}",
        output.stdout
    );
    assert!(output.stderr.lines().count() >= 2, "logs go to stderr");
}

#[tokio::test]
async fn default_listener_is_a_free_loopback_port() {
    let one = outpost().start().await;
    let other = outpost().start().await;
    assert_ne!(one.address(), other.address());
    assert!(one.address().starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn connections_are_accepted_once_the_url_is_printed() {
    for _ in 0..10 {
        let server = outpost().start().await;
        server.client().await.check_alive().await;
    }
}

#[tokio::test]
async fn each_listener_prints_a_line_and_is_served() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let unix = format!("unix://{}", path.display());
    let server = outpost()
        .listen(&unix)
        .listen("ws://127.0.0.1:0")
        .start()
        .await;
    let urls = server.urls();
    assert_eq!(urls.len(), 3);
    assert!(urls[0].starts_with("ws://127.0.0.1:"), "{urls:?}");
    assert_eq!(urls[1], unix);
    assert!(urls[2].starts_with("ws://127.0.0.1:"), "{urls:?}");
    assert_eq!(server.stdout(), urls.join("\n") + "\n");
    for url in urls {
        let client = server.connect_to(url).await;
        client.handshake().await;
        assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
    }
}

#[tokio::test]
async fn urls_go_to_stderr_with_stdio() {
    let mut server = outpost()
        .on(Transport::Stdio)
        .listen("ws://127.0.0.1:0")
        .start()
        .await;
    let urls = server.urls().to_vec();
    assert_eq!(urls.len(), 1);
    let lines = server.connect().await;
    lines.handshake().await;
    let socket = server.connect_to(&urls[0]).await;
    socket.handshake().await;
    for client in [&lines, &socket] {
        assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
    }
    assert!(server.stderr().lines().any(|line| line == urls[0]));
    // The end of stdin ends the server, with all its listeners.
    socket.start(sh("q", "exec sleep 1000")).await;
    lines.end_input().await;
    socket.connection_end().await;
    assert_eq!(server.wait().await.code, Some(0));
}

#[tokio::test]
async fn stdio_has_two_spellings() {
    for spelling in ["stdio", "stdio://"] {
        let run = outpost().run(&["serve", "--listen", spelling]).await;
        assert_eq!(run.code, Some(0), "the end of its input: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}

#[tokio::test]
async fn ipv6_loopback_is_accepted() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let server = outpost().listen("ws://[::1]:0").start().await;
    let url = &server.urls()[1];
    assert!(url.starts_with("ws://[::1]:"), "{url}");
    let client = server.connect_to(url).await;
    client.call("initialize", json!({"clientName": "x"})).await;
}
