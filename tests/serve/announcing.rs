//! Where a server says that it listens.

use outpost_testkit::{Start, Transport, sh};
use serde_json::json;

use crate::outpost;

#[tokio::test]
async fn stdout_has_one_line_with_the_url_and_nothing_else_ever() {
    let mut server = outpost().args(&["--log-level", "trace"]).start().await;
    let client = server.client().await;
    client.run(sh("p", "echo out; echo err >&2")).await;
    client.start_fails(Start::new("q", &["/no/such"])).await;
    client.send_text("garbage").await;
    client.unasked(0).await;
    drop(client);
    server.signal(rustix::process::Signal::TERM);
    let ended = server.ended().await;
    let address = ended.stdout.strip_prefix("ws://127.0.0.1:").expect("a URL");
    let port = address.strip_suffix('\n').expect("a whole line");
    assert!(
        port.parse::<u16>().is_ok_and(|port| port > 0),
        "{:?}",
        ended.stdout
    );
    assert!(ended.stderr.lines().count() >= 2, "logs go to stderr");
}

#[tokio::test]
async fn a_server_without_arguments_is_on_a_free_port_of_loopback() {
    let one = outpost().start().await;
    let other = outpost().start().await;
    assert_ne!(one.address(), other.address());
    assert!(one.address().starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn as_soon_as_the_url_is_there_connections_are_accepted() {
    for _ in 0..10 {
        let server = outpost().start().await;
        server.client().await.is_alive().await;
    }
}

#[tokio::test]
async fn several_listeners_have_one_line_each_and_all_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
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
        client.shake_hands().await;
        assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
    }
}

#[tokio::test]
async fn beside_stdio_the_urls_are_on_stderr() {
    let mut server = outpost()
        .on(Transport::Stdio)
        .listen("ws://127.0.0.1:0")
        .start()
        .await;
    let urls = server.urls().to_vec();
    assert_eq!(urls.len(), 1);
    let lines = server.connect().await;
    lines.shake_hands().await;
    let socket = server.connect_to(&urls[0]).await;
    socket.shake_hands().await;
    for client in [&lines, &socket] {
        assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
    }
    assert!(server.stderr().lines().any(|line| line == urls[0]));
    // The end of the input is the end of all.
    socket.start(sh("q", "exec sleep 1000")).await;
    lines.end_input().await;
    socket.goodbye().await;
    assert_eq!(server.ended().await.code, Some(0));
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
async fn ipv6_loopback_is_loopback() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let server = outpost().listen("ws://[::1]:0").start().await;
    let url = &server.urls()[1];
    assert!(url.starts_with("ws://[::1]:"), "{url}");
    let client = server.connect_to(url).await;
    client.call("initialize", json!({"clientName": "x"})).await;
}
