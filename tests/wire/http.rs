//! Tests HTTP before the WebSocket upgrade.

use outpost_testkit::{Transport, http_client, sh};

use crate::outpost;

#[tokio::test]
async fn probes_return_200_on_each_socket() {
    let server = outpost().start().await;
    for path in ["/readyz", "/healthz"] {
        let response = http_client::get(server.address(), path, &[]).await;
        assert_eq!(response.status, 200, "{path}");
    }
    let server = outpost().on(Transport::Unix).start().await;
    for path in ["/readyz", "/healthz"] {
        let response = http_client::get_over_unix(server.socket_path(), path, &[]).await;
        assert_eq!(response.status, 200, "{path}");
    }
}

#[tokio::test]
async fn request_with_an_origin_is_403() {
    let server = outpost().start().await;
    let origins = [
        "Origin: https://evil.example",
        "origin: null",
        "ORIGIN: http://localhost",
    ];
    for origin in origins {
        for path in ["/readyz", "/healthz", "/", "/whatever"] {
            let response = http_client::get(server.address(), path, &[origin]).await;
            assert_eq!(response.status, 403, "{path} {origin}");
            let upgrade = [http_client::UPGRADE, &[origin]].concat();
            let response = http_client::get(server.address(), path, &upgrade).await;
            assert_eq!(response.status, 403, "upgrade of {path} {origin}");
        }
    }
    let unix = outpost().on(Transport::Unix).start().await;
    let upgrade = [http_client::UPGRADE, &[origins[0]]].concat();
    let response = http_client::get_over_unix(unix.socket_path(), "/", &upgrade).await;
    assert_eq!(response.status, 403);
}

#[tokio::test]
async fn upgrades_of_other_hosts_are_403() {
    let server = outpost()
        .args(&["--allowed-hosts", "build.example"])
        .start()
        .await;
    for (host, status) in [
        ("localhost", 101),
        ("127.0.0.1:1", 101),
        ("[::1]:80", 101),
        ("build.example:80", 101),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("10.0.0.1", 403),
    ] {
        let upgrade = http_client::UPGRADE;
        let response = http_client::get_as(server.address(), host, "/", upgrade).await;
        assert_eq!(response.status, status, "{host}");
        // Supervisors probe by any name.
        let response = http_client::get_as(server.address(), host, "/readyz", &[]).await;
        assert_eq!(response.status, 200, "{host}");
    }
    // Only the owner can open a unix socket, whatever it is called.
    let unix = outpost().on(Transport::Unix).start().await;
    let host = ["Host: evil.example"];
    let response = http_client::get_over_unix(unix.socket_path(), "/readyz", &host).await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn only_allowed_origins_may_connect() {
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
        let response = http_client::get(server.address(), "/readyz", origins).await;
        assert_eq!(response.status, probe, "{origins:?}");
        let headers = [http_client::UPGRADE, origins].concat();
        let response = http_client::get(server.address(), "/", &headers).await;
        assert_eq!(response.status, upgrade, "upgrade of {origins:?}");
    }
}

#[tokio::test]
async fn upgrade_response_matches_released_clients() {
    let server = outpost().start().await;
    let response = http_client::get(server.address(), "/", http_client::UPGRADE).await;
    assert_eq!(response.status, 101);
    // The HTTP client that most WebSocket clients use compares the whole value.
    let connection = response.header("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{connection}");
    let upgrade = response.header("upgrade").unwrap_or_default();
    assert!(upgrade.eq_ignore_ascii_case("websocket"), "{upgrade}");
    let accept = response.header("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(response.header("sec-websocket-protocol"), None);
    assert_eq!(response.header("sec-websocket-extensions"), None);
}

#[tokio::test]
async fn offered_subprotocol_is_echoed() {
    let server = outpost().start().await;
    let offer = ["Sec-WebSocket-Protocol: exec-server.v0, something.else"];
    let headers = [http_client::UPGRADE, &offer].concat();
    let response = http_client::get(server.address(), "/", &headers).await;
    assert_eq!(response.status, 101);
    assert_eq!(
        response.header("sec-websocket-protocol"),
        Some("exec-server.v0")
    );
}

#[tokio::test]
async fn non_websocket_request_is_rejected_at_once() {
    let server = outpost().start().await;
    let response = http_client::get(server.address(), "/", &[]).await;
    assert!((400..500).contains(&response.status), "{}", response.head);
    let old = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 8",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let response = http_client::get(server.address(), "/", &old).await;
    assert!((400..500).contains(&response.status), "{}", response.head);
    let without_key = &http_client::UPGRADE[..3];
    let response = http_client::get(server.address(), "/", without_key).await;
    assert!((400..500).contains(&response.status), "{}", response.head);
}

#[tokio::test]
async fn endless_request_affects_no_other_client() {
    let server = outpost().start().await;
    let endless = tokio::net::TcpStream::connect(server.address()).await;
    let endless = endless.expect("a connection");
    endless.writable().await.expect("an open connection");
    let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ";
    endless.try_write(head).expect("free buffer space");
    let client = server.client().await;
    assert_eq!(client.run(sh("p", "echo fine")).await.text(), "fine\n");
}
