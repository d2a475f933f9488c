//! The owner of the server reaches into any session, and nobody else does.

use std::time::Duration;

use outpost_engine::Limits;
use outpost_server::{Peer as Who, Server, Settings};
use serde_json::{Value, json};

use crate::peer::{Peer, server, server_with};

/// What may name a session.
const REACHING: [&str; 4] = [
    "process/read",
    "process/signal",
    "process/terminate",
    "session/close",
];

fn params(session: &str) -> Value {
    json!({"processId": "p", "signal": "interrupt", "sessionId": session})
}

async fn owner(server: &Server) -> Peer {
    let mut owner = Peer::connect_as(server, Who::Owner);
    owner.initialize(json!({"clientName": "owner"})).await;
    owner
}

/// A client with a session, in which a process runs that repeats its input.
async fn with_cat(server: &Server) -> (Peer, String) {
    let mut client = Peer::connect(server);
    let session = client.initialize(json!({"clientName": "client"})).await;
    start_cat(&mut client).await;
    (client, session)
}

async fn start_cat(client: &mut Peer) {
    let start = json!({"processId": "p", "argv": ["cat"], "cwd": "file:///", "pipeStdin": true});
    let started = client.call("process/start", start).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
}

async fn type_in(client: &mut Peer, base64: &str) {
    let write = json!({"processId": "p", "chunk": base64});
    let written = client.call("process/write", write).await;
    assert_eq!(written["result"]["status"], "accepted");
}

#[tokio::test]
async fn only_the_owner_may_name_a_session() {
    let server = server(Settings::default());
    let (mut client, session) = with_cat(&server).await;
    for method in REACHING {
        // Not even its own: who it is hasn't been proven.
        let refused = client.call(method, params(&session)).await;
        assert_eq!(refused["error"]["code"], -32600, "{method}");
        assert_eq!(
            refused["error"]["message"],
            "sessionId is for the owner of the server, over a unix socket",
            "{method}"
        );
    }
    let list = client.call("process/list", json!({})).await;
    assert_eq!(list["result"]["processes"][0]["state"], "running");
    client.call("session/close", json!({})).await;
}

#[tokio::test]
async fn a_session_that_is_not_there_is_said_to_be_unknown() {
    let server = server(Settings::default());
    let mut owner = owner(&server).await;
    for method in REACHING {
        let refused = owner.call(method, params("nope")).await;
        assert_eq!(refused["error"]["code"], -32600, "{method}");
        assert_eq!(
            refused["error"]["message"], "unknown session id nope",
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_session_id_that_is_none_is_a_mistake() {
    let server = server(Settings::default());
    let mut owner = owner(&server).await;
    for method in REACHING {
        let mut params = params("x");
        params["sessionId"] = json!(7);
        let refused = owner.call(method, params).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test]
async fn what_a_process_writes_can_be_read_beside_its_client() {
    let server = server(Settings::default());
    let (mut client, session) = with_cat(&server).await;
    let mut owner = owner(&server).await;
    // One of the same name is another one.
    start_cat(&mut owner).await;
    let poll = json!({"processId": "p", "waitMs": 60_000, "sessionId": session});
    owner
        .send(&json!({"id": "poll", "method": "process/read", "params": poll}))
        .await;
    type_in(&mut client, "aGk=").await;
    let page = loop {
        let message = owner.message().await;
        if message["id"] == "poll" {
            break message;
        }
    };
    assert_eq!(page["result"]["chunks"][0]["chunk"], "aGk=");
    assert_eq!(page["result"]["chunks"][0]["seq"], 1);
    // Its client had it too, and still has the session.
    let list = owner.call("session/list", json!({})).await;
    let sessions = list["result"]["sessions"].as_array().unwrap().clone();
    assert!(
        sessions.iter().all(|entry| entry["attached"] == true),
        "{list}"
    );
    client.call("session/close", json!({})).await;
    owner.call("session/close", json!({})).await;
}

#[tokio::test]
async fn what_waits_for_ones_own_process_of_that_name_holds_nothing_up() {
    let server = server_with(
        Settings::default(),
        Limits {
            stdin_bytes: 1,
            ..Limits::default()
        },
    );
    let (mut client, session) = with_cat(&server).await;
    let mut owner = owner(&server).await;
    let start = json!({
        "processId": "p", "argv": ["sleep", "1000"], "cwd": "file:///", "pipeStdin": true,
        "env": {"PATH": "/usr/bin:/bin"}
    });
    owner.call("process/start", start).await;
    // Nobody reads that, so the second one has to wait.
    for id in ["fills", "waits"] {
        let write = json!({"processId": "p", "chunk": "aaaa".repeat(50 * 1024)});
        owner
            .send(&json!({"id": id, "method": "process/write", "params": write}))
            .await;
    }
    let read = json!({"processId": "p", "sessionId": session});
    let page = owner.call("process/read", read).await;
    assert_eq!(page["result"]["closed"], false, "{page}");
    client.call("session/close", json!({})).await;
    owner.call("session/close", json!({})).await;
}

#[tokio::test]
async fn a_process_is_signalled_and_ended_from_elsewhere() {
    let server = server(Settings::default());
    let (_client, session) = with_cat(&server).await;
    let mut owner = owner(&server).await;
    let stop = json!({"processId": "p", "signal": "stop", "sessionId": session});
    assert_eq!(
        owner.call("process/signal", stop).await["result"],
        json!({})
    );
    let end = json!({"processId": "p", "sessionId": session});
    let ended = owner.call("process/terminate", end.clone()).await;
    assert_eq!(ended["result"]["running"], true);
    let mut read = end.clone();
    read["waitMs"] = json!(60_000);
    let page = owner.call("process/read", read).await;
    assert_eq!(page["result"]["exitCode"], 137);
    let again = owner.call("process/terminate", end).await;
    assert_eq!(again["result"]["running"], false);
}

#[tokio::test]
async fn another_session_is_closed_and_ones_own_stays() {
    let server = server(Settings::default());
    let (_client, session) = with_cat(&server).await;
    let mut owner = owner(&server).await;
    start_cat(&mut owner).await;
    let close = json!({"sessionId": session});
    let closed = owner.call("session/close", close.clone()).await;
    assert_eq!(closed["result"], json!({}));
    let again = owner.call("session/close", close).await;
    assert_eq!(
        again["error"]["message"],
        format!("unknown session id {session}")
    );
    let list = owner.call("session/list", json!({})).await;
    let sessions = list["result"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{list}");
    assert_eq!(sessions[0]["processes"][0]["state"], "running");
    owner.call("session/close", json!({})).await;
}

/// After a resume nothing is evicted until its client has had the chance to
/// read; somebody else's reading doesn't use that up.
#[tokio::test]
async fn reading_from_elsewhere_takes_nothing_from_a_client_that_came_back() {
    const CHUNK: usize = 48 * 1024;
    let limits = Limits {
        retain_bytes: 64 * 1024,
        catch_up: Duration::from_secs(3600),
        ..Limits::default()
    };
    let server = server_with(Settings::default(), limits);
    let (mut client, session) = with_cat(&server).await;
    let chunk = "aaaa".repeat(CHUNK / 3);
    type_in(&mut client, &chunk).await;
    wrote(&mut client, CHUNK).await;
    let mut client = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session, "takeover": true});
    client.initialize(resume).await;

    let mut owner = owner(&server).await;
    let read = json!({"processId": "p", "sessionId": session, "maxBytes": 1});
    let page = owner.call("process/read", read.clone()).await;
    assert_eq!(page["result"]["chunks"][0]["seq"], 1);

    type_in(&mut client, &chunk).await;
    wrote(&mut client, 2 * CHUNK).await;
    let read = json!({"processId": "p", "maxBytes": 1});
    let page = client.call("process/read", read).await;
    assert_eq!(page["result"]["chunks"][0]["seq"], 1, "it is still there");
    client.call("session/close", json!({})).await;
}

/// Waits until the process has written so much.
async fn wrote(client: &mut Peer, bytes: usize) {
    loop {
        let list = client.call("process/list", json!({})).await;
        let written = list["result"]["processes"][0]["bytesOut"].as_u64();
        if written >= Some(bytes as u64) {
            return;
        }
        tokio::task::yield_now().await;
    }
}
