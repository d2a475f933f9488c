//! Sessions over the built binary.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Direction, Link, Story, Transport, programs, sh};
use serde_json::{Value, json};

use crate::outpost;

#[tokio::test]
async fn a_dropped_connection_leaves_the_process_running_and_a_resume_reads_on() {
    let server = outpost().start().await;
    let first = server.connect().await;
    let hello = first.shake_hands().await;
    let session = hello["sessionId"].as_str().unwrap().to_owned();
    first
        .start(sh("p", "echo one; read line; echo got $line; exit 3").stdin())
        .await;
    first.sees("p", "one").await;
    first.cut().await;
    let second = server.connect().await;
    resume(&second, json!({"resumeSessionId": session})).await;
    second.write("p", "hello\n", "w").await;
    let story = rest_of(&second, "p").await;
    assert_eq!(story.code(), 3);
    assert!(story.text().contains("got hello"), "{}", story.text());
    let page = second.read("p", json!({})).await;
    assert_eq!(page["chunks"][0]["seq"], 1, "all of it is retained");
}

#[tokio::test]
async fn an_expired_session_leaves_nothing_not_even_a_daemon() {
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
        client.sees(&format!("p{n}"), "ready").await;
    }
    client.cut().await;
    // The server itself is all that is left.
    server.mark().alive(1).await;
}

#[tokio::test]
async fn a_closed_session_leaves_nothing_and_says_so_when_it_is_true() {
    let server = outpost().start().await;
    let client = server.client().await;
    client.start(sh("daemon", programs::DAEMON)).await;
    client.start(sh("deaf", programs::IGNORES_TERM)).await;
    client.sees("daemon", "ready").await;
    client.sees("deaf", "ready").await;
    assert_eq!(client.call("session/close", json!({})).await, json!({}));
    assert_eq!(
        server.mark().living(),
        [server.pid()],
        "the server is all that is left"
    );
}

#[tokio::test]
async fn a_half_open_link_is_left_behind_within_5_seconds() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let half_open = server.connect_to(link.url()).await;
    let hello = half_open.shake_hands().await;
    let session = hello["sessionId"].as_str().unwrap().to_owned();
    // Both ends stay connected and hear nothing of each other.
    link.stall(Direction::ToServer);
    link.stall(Direction::ToClient);
    let start = Instant::now();
    let next = server.connect().await;
    loop {
        let params = json!({"clientName": "t", "resumeSessionId": session});
        match next.try_call("initialize", params).await {
            Ok(answer) => {
                assert_eq!(answer["sessionId"], session.as_str());
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
async fn a_takeover_answers_the_long_polls_of_the_old_connection_and_closes_it() {
    let server = outpost().start().await;
    let old = server.connect().await;
    let session = old.shake_hands().await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    old.start(sh("p", "echo ready; exec sleep 1000")).await;
    old.sees("p", "ready").await;
    let poll = old
        .request(
            "process/read",
            json!({"processId": "p", "afterSeq": 1, "waitMs": 60000}),
        )
        .await;
    let new = server.connect().await;
    resume(&new, json!({"resumeSessionId": session, "takeover": true})).await;
    let refused = old.answer(poll).await.unwrap_err();
    assert_eq!(
        refused.parts(),
        (-32600, "session has been resumed by another connection")
    );
    assert_eq!(old.goodbye().await, outpost_testkit::Goodbye::Code(4001));
    assert!(new.terminate("p").await);
    rest_of(&new, "p").await;
}

#[tokio::test]
async fn the_owner_sees_all_sessions_over_a_unix_socket_and_nobody_else_does() {
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
    client.end("p").await;

    let public = outpost().start().await;
    let stranger = public.client().await;
    assert_eq!(stranger.fails("session/list", json!({})).await.code, -32600);
}

#[tokio::test]
async fn sessions_are_bounded() {
    let server = outpost().args(&["--max-sessions", "2"]).start().await;
    let _first = server.client().await;
    let _second = server.client().await;
    let third = server.connect().await;
    let refused = third.fails("initialize", json!({"clientName": "t"})).await;
    assert_eq!(refused.parts(), (-32001, "Server overloaded; retry later."));
}

#[tokio::test]
async fn what_is_evicted_while_nobody_is_attached_shows_as_a_jump() {
    let server = outpost().start().await;
    let first = server.connect().await;
    let session = first.shake_hands().await["sessionId"]
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
        let text: Vec<u8> = Story::page_bytes(&page);
        if text.ends_with(b"end\n") {
            break page;
        }
    };
    let first_seq = page["chunks"][0]["seq"].as_u64().unwrap();
    assert!(first_seq > 1, "the oldest went, and it shows");
    assert!(second.terminate("p").await);
    rest_of(&second, "p").await;
}

/// What a connection hears of a process that began before it.
async fn rest_of(client: &Client, id: &str) -> Story {
    client.story_until(id, "the close", Story::is_closed).await
}

async fn resume(client: &Client, params: Value) {
    // The server may not have noticed the drop yet.
    loop {
        match client.try_call("initialize", params.clone()).await {
            Ok(_) => break,
            Err(error) => assert_eq!(error.code, -32010, "{error:?}"),
        }
    }
    client.notify("initialized", json!({})).await;
}
