//! HTTP requests in absolute form, and `CONNECT`.

use std::sync::Arc;

use outpost_netproxy::Limits;
use outpost_types::NetworkAnswer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{
    Answering, TestDialer, config, echo_server, mirror_server, start, start_with,
};

#[tokio::test]
async fn plain_request_reaches_its_target_without_hop_by_hop_headers() {
    let mut fixture = start(TestDialer::default().server("a.test", mirror_server().await));
    let response = fixture
        .send(
            "GET http://user:secret@a.test/x?y=1 HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: close\r\n\
             Connection: close, x-mine\r\nX-Mine: 1\r\nX-Other: 2\r\n\r\n",
        )
        .await;
    let (head, mirrored) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("x-end: 1") && !head.contains("x-hop"),
        "{head}"
    );
    let mirrored = mirrored.to_lowercase();
    assert!(
        mirrored.starts_with("get /x?y=1 http/1.1\r\n"),
        "{mirrored}"
    );
    assert!(mirrored.contains("host: a.test\r\n") && mirrored.contains("x-other: 2\r\n"));
    for header in ["proxy-connection", "x-mine", "secret"] {
        assert!(!mirrored.contains(header), "{mirrored}");
    }
    assert_eq!(fixture.decision().await, "allow allow http a.test 80");
    let (records, _) = fixture.proxy.activity().records();
    assert!(records[0].sent_bytes() > 30 && records[0].received_bytes() > 30);
}

#[tokio::test]
async fn body_is_passed_on() {
    let fixture = start(TestDialer::default().server("a.test", mirror_server().await));
    let response = fixture
        .send(
            "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
             Content-Length: 7\r\n\r\nthe end",
        )
        .await;
    assert!(response.contains("content-length: 7\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nthe end"), "{response}");
}

#[tokio::test]
async fn refused_plain_requests_get_json() {
    let mut fixture = start(TestDialer::default().name("private.test", "10.0.0.1"));
    for (url, reason, error, message) in [
        (
            "other.example",
            "not_allowed",
            "allowlist",
            "Domain not in allowlist.",
        ),
        (
            "evil.test",
            "denied",
            "denylist",
            "Domain denied by the sandbox policy.",
        ),
        (
            "private.test",
            "not_allowed_local",
            "allowlist",
            "Sandbox policy blocks local/private network addresses.",
        ),
        (
            "127.0.0.1",
            "not_allowed_local",
            "allowlist",
            "Sandbox policy blocks local/private network addresses.",
        ),
    ] {
        // A decider that does not exist refuses.
        let request =
            format!("GET http://{url}/ HTTP/1.1\r\nHost: {url}\r\nConnection: close\r\n\r\n");
        let response = fixture.send(&request).await;
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(
            head.contains(&format!("x-proxy-error: blocked-by-{error}")),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let expected = json!({
            "status": "blocked", "host": url, "reason": reason, "decision": "deny",
            "source": "baseline_policy", "protocol": "http", "port": 80, "message": message,
        });
        assert_eq!(body, expected);
        assert_eq!(
            fixture.decision().await,
            format!("deny {reason} http {url} 80")
        );
    }
}

#[tokio::test]
async fn tunnel_relays_both_directions() {
    let mut fixture = start(TestDialer::default().server("a.test", echo_server().await));
    let mut tunnel = fixture.connect("A.test:22").await.expect("allowed");
    assert_eq!(
        fixture.decision().await,
        "allow allow https_connect a.test 22"
    );
    let block = vec![7; 300_000];
    let (mut read, mut write) = tunnel.split();
    let send = async {
        write.write_all(&block).await.expect("write");
        write.shutdown().await.expect("shut down");
    };
    let mut echoed = Vec::new();
    let (_, received) = tokio::join!(send, read.read_to_end(&mut echoed));
    received.expect("read");
    assert!(echoed == block);
    let activity = fixture.proxy.activity();
    let record = &activity.records().0[0];
    assert_eq!(
        (record.sent_bytes(), record.received_bytes()),
        (300_000, 300_000)
    );
    assert_eq!(activity.bytes(), 600_000);
}

#[tokio::test]
async fn refused_tunnels_get_the_message() {
    let fixture = start(TestDialer::default().name("private.test", "127.0.0.1"));
    for (target, error, message) in [
        (
            "other.example:443",
            "blocked-by-allowlist",
            "Domain not in allowlist.",
        ),
        (
            "evil.test:443",
            "blocked-by-denylist",
            "Domain denied by the sandbox policy.",
        ),
        (
            "private.test:443",
            "blocked-by-allowlist",
            "Sandbox policy blocks local/private network addresses.",
        ),
        (
            "[::ffff:127.0.0.1]:443",
            "blocked-by-allowlist",
            "Sandbox policy blocks local/private network addresses.",
        ),
    ] {
        let response = fixture.connect(target).await.expect_err("refused");
        assert!(
            response.starts_with("HTTP/1.1 403 Forbidden\r\n"),
            "{response}"
        );
        assert!(
            response.contains(&format!("x-proxy-error: {error}\r\n")),
            "{response}"
        );
        assert!(
            response.contains("content-type: text/plain\r\n"),
            "{response}"
        );
        assert!(response.ends_with(message), "{response}");
    }
}

#[tokio::test]
async fn unreachable_target_is_502() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.local_addr().expect("an address").port()
    };
    let fixture = start(TestDialer::default().server("a.test", closed));
    let response = fixture.connect("a.test:443").await.expect_err("refused");
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    let request = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let response = fixture.send(request).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(response.ends_with("upstream failure"), "{response}");
}

#[tokio::test]
async fn requests_with_ambiguous_targets_are_rejected() {
    let fixture = start(TestDialer::default().server("a.test", mirror_server().await));
    let mismatch = "Host header does not match request target";
    for (request, status, text) in [
        ("GET http://a.test/ HTTP/1.1\r\nHost: b.test", 400, mismatch),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test",
            400,
            mismatch,
        ),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test:81",
            400,
            mismatch,
        ),
        (
            "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443",
            400,
            mismatch,
        ),
        (
            "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test",
            400,
            "unsupported scheme",
        ),
        (
            "GET https://a.test/ HTTP/1.1\r\nHost: a.test",
            400,
            "unsupported scheme",
        ),
        (
            "CONNECT a.test HTTP/1.1\r\nHost: a.test",
            400,
            "invalid host or port",
        ),
        (
            "GET http://a.test/ HTTP/1.1\r\nx-unix-socket: /s",
            501,
            "unix sockets unsupported",
        ),
        ("GET /x HTTP/1.1\r\nHost: a.test", 403, "not_allowed_local"),
        (
            "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 4",
            400,
            "",
        ),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX : y",
            400,
            "",
        ),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: y\r\n folded",
            400,
            "",
        ),
    ] {
        let request = format!("{request}\r\nConnection: close\r\n\r\n");
        let response = fixture.send(&request).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&expected), "{request}{response}");
        assert!(response.contains(text), "{request}{response}");
    }
}

#[tokio::test]
async fn second_length_of_a_smuggled_request_is_not_passed_on() {
    let fixture = start(TestDialer::default().server("a.test", mirror_server().await));
    let response = fixture
        .send(
            "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 5\r\n\
             Transfer-Encoding: chunked\r\n\r\n7\r\nthe end\r\n0\r\n\r\n\
             GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        )
        .await;
    assert!(!response.contains("evil.test"), "{response}");
    let lower = response.to_lowercase();
    let lengths = lower.matches("content-length").count() - 1;
    let encodings = lower.matches("transfer-encoding").count();
    assert!(
        response.starts_with("HTTP/1.1 400") || (lengths == 0 && encodings == 1),
        "{response}"
    );
}

#[tokio::test]
async fn limited_mode_allows_reading_only() {
    let dialer = TestDialer::default().server("a.test", mirror_server().await);
    let limited = config(json!({"mode": "limited"}));
    let mut fixture = start_with(dialer, limited, None, Limits::default());
    for (method, status) in [
        ("GET", 200),
        ("HEAD", 200),
        ("OPTIONS", 200),
        ("POST", 403),
        ("PUT", 403),
    ] {
        let request = format!(
            "{method} http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
        );
        let response = fixture.send(&request).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{response}"
        );
        assert_eq!(fixture.decision().await, "allow allow http a.test 80");
        if status == 403 {
            assert!(
                response.contains("Method not allowed in limited mode."),
                "{response}"
            );
            let second = fixture.decision().await;
            assert_eq!(second, "deny method_not_allowed http a.test 80");
        }
    }
    let response = fixture.connect("a.test:443").await.expect_err("refused");
    assert!(
        response.ends_with("Method not allowed in limited mode."),
        "{response}"
    );
}

#[tokio::test]
async fn redirect_leads_to_a_request_that_is_judged_anew() {
    // The program follows a redirect by a request of its own, on the same connection.
    let fixture = start(TestDialer::default().server("a.test", mirror_server().await));
    let response = fixture
        .send(
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n\
             GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\
             Connection: close\r\n\r\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(
        response.contains("HTTP/1.1 403 Forbidden\r\n"),
        "{response}"
    );
    assert!(response.contains("not_allowed_local"), "{response}");
}

#[tokio::test]
async fn decider_is_asked_for_every_request() {
    let dialer = TestDialer::default().server("x.example", mirror_server().await);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let decider = Answering(move |target: outpost_types::NetworkTarget| {
        assert_eq!((&*target.host, target.port), ("x.example", 80));
        let first = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        Some(match first {
            true => NetworkAnswer::Allow,
            false => NetworkAnswer::Deny {
                reason: Some("no more".to_owned()),
            },
        })
    });
    let limits = Limits::default();
    let mut fixture = start_with(dialer, config(json!({})), Some(Arc::new(decider)), limits);
    let get = "GET http://x.example/ HTTP/1.1\r\nHost: x.example\r\n";
    let response = fixture
        .send(&format!("{get}\r\n{get}Connection: close\r\n\r\n"))
        .await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let (_, second) = response
        .split_once("HTTP/1.1 403 Forbidden\r\n")
        .expect("refused");
    assert!(
        second.contains("x-proxy-error: blocked-by-policy\r\n"),
        "{second}"
    );
    assert!(second.contains("\"reason\":\"no more\""), "{second}");
    assert!(second.contains("\"source\":\"decider\""), "{second}");
    assert_eq!(
        fixture.decision().await,
        "allow not_allowed http x.example 80"
    );
    assert_eq!(fixture.decision().await, "deny no more http x.example 80");
}
