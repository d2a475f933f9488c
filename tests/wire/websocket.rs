//! Tests the WebSocket transport.

use std::time::{Duration, Instant};

use outpost_testkit::{ConnectionEnd, Start, Transport, frames, sh};
use serde_json::json;

use crate::{outpost, ready};

#[tokio::test]
async fn text_and_binary_frames_carry_messages() {
    for transport in [Transport::WebSocket, Transport::Unix] {
        let server = outpost().on(transport).start().await;
        let client = server.client().await;
        let request = r#"{"id":1001,"method":"environment/status"}"#;
        client
            .send_frames(vec![frames::binary(request.as_bytes())])
            .await;
        assert!(client.response(1001).await.is_ok(), "{transport:?}");
        let request = r#"{"id":1002,"method":"environment/status"}"#;
        client.send_frames(vec![frames::text(request)]).await;
        assert!(client.response(1002).await.is_ok(), "{transport:?}");
    }
}

#[tokio::test]
async fn message_may_be_fragmented_with_pings_between() {
    let (_server, client) = ready().await;
    let pieces: [&[u8]; 4] = [
        br#"{"id":1001,"met"#,
        b"",
        br#"hod":"environment/sta"#,
        br#"tus"}"#,
    ];
    let mut message = frames::fragments(pieces);
    message.insert(1, frames::ping(b"between"));
    message.push(frames::text(r#"{"id":1002,"method":"environment/status"}"#));
    client.send_frames(message).await;
    assert!(client.response(1001).await.is_ok());
    assert!(client.response(1002).await.is_ok());
    client.pong(b"between").await;
}

#[tokio::test]
async fn ping_is_answered_with_its_payload() {
    let server = outpost().start().await;
    let client = server.connect().await;
    for payload in [&b""[..], b"one", b"two", &[0xff; 125]] {
        client.send_frames(vec![frames::ping(payload)]).await;
        client.pong(payload).await;
    }
}

#[tokio::test]
async fn close_is_answered_with_close() {
    let (_server, client) = ready().await;
    client.send_frames(vec![frames::close()]).await;
    assert!(matches!(
        client.connection_end().await,
        ConnectionEnd::Code(_)
    ));
}

#[tokio::test]
async fn broken_frames_end_only_that_connection() {
    let server = outpost().start().await;
    let client = server.client().await;
    let broken = server.client().await;
    // A continuation frame without a message.
    broken.send_frames(vec![frames::continuation("x")]).await;
    assert_eq!(broken.connection_end().await, ConnectionEnd::Code(1002));
    client.check_alive().await;
}

#[tokio::test]
async fn small_messages_are_sent_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let unix = format!("unix://{}/socket", dir.path().display());
    let server = outpost().listen(&unix).start().await;
    let over_tcp = server.client().await;
    // A unix socket has no such delay; its time is the reference on machines of any speed.
    let over_unix = server.connect_to(&unix).await;
    over_unix.handshake().await;
    let rounds = 60;
    let mut took = [Duration::ZERO; 2];
    for client in [&over_tcp, &over_unix] {
        client.start(Start::new("cat", &["cat"]).stdin()).await;
    }
    for round in 0..rounds {
        for (client, took) in [&over_tcp, &over_unix].into_iter().zip(&mut took) {
            let start = Instant::now();
            // Response and echo are two messages in a row. With Nagle's algorithm the second would
            // wait 40 ms for the acknowledgement of the first.
            let text = format!("{round}\n");
            client.write("cat", &text, &format!("w{round}")).await;
            client.wait_output("cat", &text).await;
            *took += start.elapsed();
        }
    }
    let [tcp, unix] = took;
    let waiting = Duration::from_millis(40) * rounds;
    assert!(
        tcp < unix * 2 + waiting / 2,
        "{tcp:?} over TCP, {unix:?} otherwise"
    );
    over_tcp.terminate_and_wait("cat").await;
    over_unix.terminate_and_wait("cat").await;
}

#[tokio::test]
async fn hundreds_of_connections_work() {
    let server = outpost().start().await;
    // The first client and its command leave descriptors that the server keeps for the next ones.
    let last = server.client().await;
    assert_eq!(last.run(sh("first", "echo fine")).await.text(), "fine\n");
    let before = server.stats().open_files();
    let mut clients = Vec::new();
    for _ in 0..300 {
        clients.push(server.client().await);
    }
    for client in &clients {
        client.check_alive().await;
    }
    for client in clients {
        client.close().await;
    }
    assert_eq!(last.run(sh("p", "echo fine")).await.text(), "fine\n");
    outpost_testkit::deadline::poll_until("the descriptors of the others to be closed", || {
        (server.stats().open_files() <= before + 2).then_some(())
    })
    .await;
    let status = last.call("environment/status", json!({})).await;
    assert_eq!(status["status"], "ready");
}
