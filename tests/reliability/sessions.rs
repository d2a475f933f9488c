//! Tests sessions: resuming, expiry, takeover.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Direction, EventLog, FaultyLink, Transport, deadline, programs, sh};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::outpost;

#[tokio::test]
async fn process_survives_its_connection_and_resume_continues() {
    let server = outpost().start().await;
    let first = server.connect().await;
    let hello = first.handshake().await;
    let session = hello["sessionId"].as_str().unwrap().to_owned();
    first
        .start(sh("p", "echo one; read line; echo got $line; exit 3").stdin())
        .await;
    first.wait_output("p", "one").await;
    first.cut().await;
    let second = server.connect().await;
    resume(&second, json!({"resumeSessionId": session})).await;
    second.write("p", "hello\n", "w").await;
    let log = later_events(&second, "p").await;
    assert_eq!(log.code(), 3);
    assert!(log.text().contains("got hello"), "{}", log.text());
    let page = second.read("p", json!({})).await;
    assert_eq!(page["chunks"][0]["seq"], 1, "all of it is retained");
}

#[tokio::test]
async fn expired_session_leaves_no_daemon() {
    let server = outpost().args(&["--session-ttl", "200ms"]).start().await;
    let client = server.client().await;
    for (n, program) in [
        programs::DAEMON,
        programs::IGNORES_TERM,
        programs::LEAVES_A_DAEMON,
        programs::HOLDS_THE_PIPE,
    ]
    .iter()
    .enumerate()
    {
        client.start(sh(&format!("p{n}"), program)).await;
        client.wait_output(&format!("p{n}"), "ready").await;
    }
    client.cut().await;
    // Only the server itself is left.
    server.tag().alive(1).await;
}

#[tokio::test]
async fn lease_does_not_run_while_the_server_is_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = format!("unix://{}", directory.path().join("s").display());
    let command = outpost().listen(&socket).args(&["--session-ttl", "4s"]);
    let server = command.start().await;
    let owner = server.connect_to(&socket).await;
    owner.handshake().await;
    let client = server.connect().await;
    let hello = client.handshake().await;
    let session = hello["sessionId"].clone();
    client.start(sh("p", "exec sleep 1000")).await;
    client.cut().await;
    let detached = async {
        loop {
            let list = owner.call("session/list", json!({})).await;
            let mut sessions = list["sessions"].as_array().expect("a list").iter();
            let found = sessions.find(|entry| entry["sessionId"] == session);
            if found.expect("the session")["attached"] == false {
                break;
            }
        }
    };
    deadline::expect_soon("the end of the connection", detached).await;
    server.signal(Signal::STOP);
    // sleep: the server is stopped for longer than the lease
    tokio::time::sleep(Duration::from_secs(8)).await;
    server.signal(Signal::CONT);
    owner.check_alive().await;
    let back = server.connect().await;
    resume(&back, json!({"resumeSessionId": session})).await;
    assert!(back.terminate("p").await, "it still runs");
}

#[tokio::test]
async fn lease_can_be_changed() {
    let server = outpost().args(&["--session-ttl", "1h"]).start().await;
    let client = server.client().await;
    let lease = async |params| client.call("session/lease", params).await;
    let hour = json!({"detachedTtlMs": 3_600_000});
    assert_eq!(lease(json!({})).await, hour);
    assert_eq!(lease(json!({"detachedTtlMs": 200})).await, hour);
    let short = json!({"detachedTtlMs": 200});
    assert_eq!(lease(json!({})).await, short);
    for too_long in [Value::Null, json!(86_400_001)] {
        let params = json!({"detachedTtlMs": too_long});
        let error = client.call_fails("session/lease", params).await;
        assert_eq!(error.code, -32602, "{error:?}");
    }
    assert_eq!(lease(json!({})).await, short);
    client.start(sh("p", programs::DAEMON)).await;
    client.wait_output("p", "ready").await;
    client.cut().await;
    // Only the server itself is left.
    server.tag().alive(1).await;
}

#[tokio::test]
async fn closed_session_leaves_nothing_when_answered() {
    let server = outpost().start().await;
    let client = server.client().await;
    client.start(sh("daemon", programs::DAEMON)).await;
    client.start(sh("deaf", programs::IGNORES_TERM)).await;
    client.wait_output("daemon", "ready").await;
    client.wait_output("deaf", "ready").await;
    assert_eq!(client.call("session/close", json!({})).await, json!({}));
    assert_eq!(
        server.tag().living(),
        [server.pid()],
        "only the server is left"
    );
}

#[tokio::test]
async fn half_open_link_is_detected_within_5_seconds() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let half_open = server.connect_to(link.url()).await;
    let hello = half_open.handshake().await;
    let session = hello["sessionId"].as_str().unwrap().to_owned();
    // Both ends stay connected and receive nothing.
    link.stall(Direction::ToServer);
    link.stall(Direction::ToClient);
    let start = Instant::now();
    let next = server.connect().await;
    loop {
        let params = json!({"clientName": "t", "resumeSessionId": session});
        match next.try_call("initialize", params).await {
            Ok(response) => {
                assert_eq!(response["sessionId"], session.as_str());
                break;
            }
            Err(error) => assert_eq!(error.code, -32010, "{error:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(5), "not within 5 s");
        // sleep: a client retries until the server has noticed the drop
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn takeover_answers_long_polls_and_closes_the_old_connection() {
    let server = outpost().start().await;
    let old = server.connect().await;
    let session = old.handshake().await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    old.start(sh("p", "echo ready; exec sleep 1000")).await;
    old.wait_output("p", "ready").await;
    let poll = old
        .request(
            "process/read",
            json!({"processId": "p", "afterSeq": 1, "waitMs": 60000}),
        )
        .await;
    // A request that was not read before the takeover gets no response.
    old.check_alive().await;
    let new = server.connect().await;
    resume(&new, json!({"resumeSessionId": session, "takeover": true})).await;
    let rejected = old.response(poll).await.unwrap_err();
    assert_eq!(
        rejected.parts(),
        (-32600, "session has been resumed by another connection")
    );
    assert_eq!(
        old.connection_end().await,
        outpost_testkit::ConnectionEnd::Code(4001)
    );
    assert!(new.terminate("p").await);
    later_events(&new, "p").await;
}

#[tokio::test]
async fn owner_lists_all_sessions_over_a_unix_socket_only() {
    let server = outpost().on(Transport::Unix).start().await;
    let client = server.connect().await;
    client
        .call(
            "initialize",
            json!({"clientName": "t", "sessionLabel": "build"}),
        )
        .await;
    client.notify("initialized", json!({})).await;
    client.start(sh("p", "exec sleep 1000")).await;
    let list = client.call("session/list", json!({})).await;
    let entry = &list["sessions"][0];
    assert_eq!(entry["label"], "build");
    assert_eq!(entry["attached"], true);
    assert_eq!(entry["processes"][0]["processId"], "p");
    assert_eq!(entry["processes"][0]["state"], "running");
    client.terminate_and_wait("p").await;

    let public = outpost().start().await;
    let other = public.client().await;
    assert_eq!(
        other.call_fails("session/list", json!({})).await.code,
        -32011
    );
}

#[tokio::test]
async fn sessions_are_bounded() {
    let server = outpost().args(&["--max-sessions", "2"]).start().await;
    let _first = server.client().await;
    let _second = server.client().await;
    let third = server.connect().await;
    let rejected = third
        .call_fails("initialize", json!({"clientName": "t"}))
        .await;
    assert_eq!(
        rejected.parts(),
        (-32001, "Server overloaded; retry later.")
    );
}

#[tokio::test]
async fn evicted_output_shows_as_a_gap() {
    let server = outpost().start().await;
    let first = server.connect().await;
    let session = first.handshake().await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    first
        .start(
            sh(
                "p",
                "read go; head -c 100000000 /dev/zero; echo; echo end; exec sleep 1000",
            )
            .stdin(),
        )
        .await;
    first.write("p", "go\n", "w").await;
    first.cut().await;
    let second = server.connect().await;
    resume(&second, json!({"resumeSessionId": session})).await;
    let page = loop {
        let page = second.read("p", json!({"afterSeq": 0})).await;
        let text: Vec<u8> = EventLog::page_bytes(&page);
        if text.ends_with(b"end\n") {
            break page;
        }
    };
    let first_seq = page["chunks"][0]["seq"].as_u64().unwrap();
    assert!(first_seq > 1, "the oldest output was evicted");
    assert!(second.terminate("p").await);
    later_events(&second, "p").await;
}

/// Collects the events of a process that was started on an earlier connection.
async fn later_events(client: &Client, id: &str) -> EventLog {
    client
        .event_log_until(id, "the close", EventLog::is_closed)
        .await
}

async fn resume(client: &Client, mut params: Value) {
    params["clientName"] = json!("outpost-testkit");
    // The server may not have noticed the drop yet.
    loop {
        match client.try_call("initialize", params.clone()).await {
            Ok(_) => break,
            Err(error) => assert_eq!(error.code, -32010, "{error:?}"),
        }
    }
    client.notify("initialized", json!({})).await;
}
