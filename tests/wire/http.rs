//! What is said before a connection is a WebSocket.

use outpost_testkit::{Transport, http, sh};

use crate::outpost;

#[tokio::test]
async fn the_probes_answer_200_on_each_socket() {
    let server = outpost().start().await;
    for path in ["/readyz", "/healthz"] {
        let answer = http::get(server.address(), path, &[]).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let server = outpost().on(Transport::Unix).start().await;
    for path in ["/readyz", "/healthz"] {
        let answer = http::get_over_unix(server.socket_path(), path, &[]).await;
        assert_eq!(answer.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_request_with_an_origin_is_403_upgrade_or_not() {
    let server = outpost().start().await;
    let origins = [
        "Origin: https://evil.example",
        "origin: null",
        "ORIGIN: http://localhost",
    ];
    for origin in origins {
        for path in ["/readyz", "/healthz", "/", "/whatever"] {
            let answer = http::get(server.address(), path, &[origin]).await;
            assert_eq!(answer.status, 403, "{path} {origin}");
            let upgrade = [http::UPGRADE, &[origin]].concat();
            let answer = http::get(server.address(), path, &upgrade).await;
            assert_eq!(answer.status, 403, "upgrade of {path} {origin}");
        }
    }
    let unix = outpost().on(Transport::Unix).start().await;
    let upgrade = [http::UPGRADE, &[origins[0]]].concat();
    let answer = http::get_over_unix(unix.socket_path(), "/", &upgrade).await;
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn an_origin_that_is_allowed_may_connect_and_no_other() {
    let allowed = "http://localhost:3000,https://app.example";
    let server = outpost()
        .env("OUTPOST_ALLOWED_ORIGINS", allowed)
        .start()
        .await;
    for (origins, probe, upgrade) in [
        (&["Origin: https://app.example"][..], 200, 101),
        (&["Origin: http://localhost:3000"], 200, 101),
        (&["Origin: http://localhost"], 403, 403),
        (&["Origin: https://app.example.evil.example"], 403, 403),
        (&["Origin: HTTPS://app.example"], 403, 403),
        (&["Origin: null"], 403, 403),
        (
            &[
                "Origin: https://app.example",
                "Origin: https://evil.example",
            ],
            403,
            403,
        ),
    ] {
        let answer = http::get(server.address(), "/readyz", origins).await;
        assert_eq!(answer.status, probe, "{origins:?}");
        let headers = [http::UPGRADE, origins].concat();
        let answer = http::get(server.address(), "/", &headers).await;
        assert_eq!(answer.status, upgrade, "upgrade of {origins:?}");
    }
}

#[tokio::test]
async fn the_upgrade_is_answered_in_the_words_that_released_clients_insist_on() {
    let server = outpost().start().await;
    let answer = http::get(server.address(), "/", http::UPGRADE).await;
    assert_eq!(answer.status, 101);
    // The client that most of them are built on compares the whole value.
    let connection = answer.header("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{connection}");
    let upgrade = answer.header("upgrade").unwrap_or_default();
    assert!(upgrade.eq_ignore_ascii_case("websocket"), "{upgrade}");
    let accept = answer.header("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.header("sec-websocket-protocol"), None);
    assert_eq!(answer.header("sec-websocket-extensions"), None);
}

#[tokio::test]
async fn a_subprotocol_that_is_offered_is_taken() {
    let server = outpost().start().await;
    let offer = ["Sec-WebSocket-Protocol: exec-server.v0, something.else"];
    let headers = [http::UPGRADE, &offer].concat();
    let answer = http::get(server.address(), "/", &headers).await;
    assert_eq!(answer.status, 101);
    assert_eq!(
        answer.header("sec-websocket-protocol"),
        Some("exec-server.v0")
    );
}

#[tokio::test]
async fn what_is_no_websocket_is_refused_without_waiting() {
    let server = outpost().start().await;
    let answer = http::get(server.address(), "/", &[]).await;
    assert!((400..500).contains(&answer.status), "{}", answer.head);
    let old = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 8",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let answer = http::get(server.address(), "/", &old).await;
    assert!((400..500).contains(&answer.status), "{}", answer.head);
    let without_key = &http::UPGRADE[..3];
    let answer = http::get(server.address(), "/", without_key).await;
    assert!((400..500).contains(&answer.status), "{}", answer.head);
}

#[tokio::test]
async fn an_endless_request_disturbs_nobody() {
    let server = outpost().start().await;
    let endless = tokio::net::TcpStream::connect(server.address()).await;
    let endless = endless.expect("a connection");
    endless.writable().await.expect("an open connection");
    let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ";
    endless.try_write(head).expect("room for a few bytes");
    let client = server.client().await;
    assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
}
