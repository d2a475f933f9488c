//! Access of the server's owner to other sessions.

use std::time::Duration;

use outpost_engine::Limits;
use outpost_server::{Peer as PeerKind, Server, Settings};
use serde_json::{Value, json};

use crate::peer::{Peer, server, server_with};

/// Methods that accept a `sessionId`.
const METHODS: [&str; 5] = [
    "process/read",
    "process/network",
    "process/signal",
    "process/terminate",
    "session/close",
];

fn params(session: &str) -> Value {
    json!({"processId": "p", "signal": "interrupt", "sessionId": session})
}

async fn owner(server: &Server) -> Peer {
    let mut owner = Peer::connect_as(server, PeerKind::Owner);
    owner.initialize(json!({"clientName": "owner"})).await;
    owner
}

/// Opens a session that runs `cat` as process `p`.
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

async fn write(client: &mut Peer, base64: &str) {
    let write = json!({"processId": "p", "chunk": base64});
    let written = client.call("process/write", write).await;
    assert_eq!(written["result"]["status"], "accepted");
}

#[tokio::test]
async fn session_id_is_for_the_owner_only() {
    let server = server(Settings::default());
    let (mut client, session) = with_cat(&server).await;
    for method in METHODS {
        // Not even its own session: the peer is not verified.
        let rejected = client.call(method, params(&session)).await;
        assert_eq!(rejected["error"]["code"], -32011, "{method}");
        assert_eq!(
            rejected["error"]["message"], "not permitted: admin is required",
            "{method}"
        );
    }
    let list = client.call("process/list", json!({})).await;
    assert_eq!(list["result"]["processes"][0]["state"], "running");
    client.call("session/close", json!({})).await;
}

#[tokio::test]
async fn unknown_session_is_rejected() {
    let server = server(Settings::default());
    let mut owner = owner(&server).await;
    for method in METHODS {
        let rejected = owner.call(method, params("nope")).await;
        assert_eq!(rejected["error"]["code"], -32600, "{method}");
        assert_eq!(
            rejected["error"]["message"], "unknown session id nope",
            "{method}"
        );
    }
}

#[tokio::test]
async fn session_id_of_the_wrong_type_is_rejected() {
    let server = server(Settings::default());
    let mut owner = owner(&server).await;
    for method in METHODS {
        let mut params = params("x");
        params["sessionId"] = json!(7);
        let rejected = owner.call(method, params).await;
        assert_eq!(rejected["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test]
async fn owner_reads_output_beside_the_client() {
    let server = server(Settings::default());
    let (mut client, session) = with_cat(&server).await;
    let mut owner = owner(&server).await;
    // A process of the same name in another session.
    start_cat(&mut owner).await;
    let poll = json!({"processId": "p", "waitMs": 60_000, "sessionId": session});
    owner
        .send(&json!({"id": "poll", "method": "process/read", "params": poll}))
        .await;
    write(&mut client, "aGk=").await;
    let page = loop {
        let message = owner.message().await;
        if message["id"] == "poll" {
            break message;
        }
    };
    assert_eq!(page["result"]["chunks"][0]["chunk"], "aGk=");
    assert_eq!(page["result"]["chunks"][0]["seq"], 1);
    // The client keeps its session.
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
async fn blocked_write_to_a_process_of_the_same_name_does_not_delay_a_read() {
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
    // The process does not read, so the second write has to wait.
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
async fn owner_signals_and_terminates_a_process() {
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
async fn owner_closes_another_session_and_keeps_its_own() {
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

/// After a resume nothing is evicted until the client had a chance to read. A read by the
/// owner does not count as that.
#[tokio::test]
async fn read_by_the_owner_evicts_nothing_from_a_resumed_session() {
    const CHUNK: usize = 48 * 1024;
    let limits = Limits {
        retain_bytes: 64 * 1024,
        catch_up: Duration::from_secs(3600),
        ..Limits::default()
    };
    let server = server_with(Settings::default(), limits);
    let (mut client, session) = with_cat(&server).await;
    let chunk = "aaaa".repeat(CHUNK / 3);
    write(&mut client, &chunk).await;
    wait_written(&mut client, CHUNK).await;
    let mut client = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session, "takeover": true});
    client.initialize(resume).await;

    let mut owner = owner(&server).await;
    let read = json!({"processId": "p", "sessionId": session, "maxBytes": 1});
    let page = owner.call("process/read", read.clone()).await;
    assert_eq!(page["result"]["chunks"][0]["seq"], 1);

    write(&mut client, &chunk).await;
    wait_written(&mut client, 2 * CHUNK).await;
    let read = json!({"processId": "p", "maxBytes": 1});
    let page = client.call("process/read", read).await;
    assert_eq!(
        page["result"]["chunks"][0]["seq"], 1,
        "it is still retained"
    );
    client.call("session/close", json!({})).await;
}

/// Waits until the process has written `bytes`.
async fn wait_written(client: &mut Peer, bytes: usize) {
    loop {
        let list = client.call("process/list", json!({})).await;
        let written = list["result"]["processes"][0]["bytesOut"].as_u64();
        if written >= Some(bytes as u64) {
            return;
        }
        tokio::task::yield_now().await;
    }
}
