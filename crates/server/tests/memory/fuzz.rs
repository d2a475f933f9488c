//! Arbitrary bytes, arbitrary JSON, and all methods in any order with arbitrary params. They
//! must cost the sender an error and affect no other client.

use outpost_server::{Server, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::peer::{Peer, server};

/// One message of a test case.
#[derive(Clone, Debug)]
enum TestMessage {
    /// A message of any bytes.
    Bytes(Vec<u8>),
    /// A message of any JSON.
    Json(Value),
    /// A method, with params that are nearly right.
    Method(Value),
}

/// Starts are listed more than once, so that processes run in most cases.
const METHODS: [&str; 39] = [
    "initialize",
    "initialized",
    "process/start",
    "process/start",
    "process/start",
    "process/start",
    "process/list",
    "process/read",
    "process/network",
    "process/write",
    "process/signal",
    "process/terminate",
    "process/resize",
    "process/list",
    "process/ack",
    "environment/info",
    "environment/status",
    "session/list",
    "process/spawn",
    "process/spawn",
    "process/writeStdin",
    "process/resizePty",
    "process/kill",
    "command/exec",
    "command/exec",
    "command/exec/write",
    "command/exec/resize",
    "command/exec/terminate",
    // Read-only methods only: the params contain real paths.
    "fs/readFile",
    "fs/open",
    "fs/readBlock",
    "fs/close",
    "fs/getMetadata",
    "fs/canonicalize",
    "fs/commit",
    "fs/watch",
    "fs/unwatch",
    "fs/watchMissing",
    "no/such",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(
                "[a-zA-Z]{0,10}|method|params|id|result|error",
                inner,
                0..6
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Plausible and implausible values of params.
fn any_member() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("a")),
        Just(json!("b")),
        Just(json!(["true"])),
        Just(json!(["cat"])),
        Just(json!(["sh", "-c", "echo out; echo err >&2; sleep 0.01"])),
        Just(json!("file:///tmp")),
        Just(json!("/tmp")),
        Just(json!(null)),
        Just(json!({})),
        Just(json!({"rows": 3, "cols": 0})),
        Just(json!({"rows": 30, "cols": 100})),
        Just(json!("interrupt")),
        Just(json!("kill")),
        Just(json!("aGVsbG8K")),
        (0_i64..50).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any_json(),
    ]
}

fn any_method() -> impl Strategy<Value = Value> {
    let members = [
        "processId",
        "processHandle",
        "argv",
        "command",
        "streamStdin",
        "streamStdoutStderr",
        "outputBytesCap",
        "disableTimeout",
        "deltaBase64",
        "sandboxPolicy",
        "permissionProfile",
        "cwd",
        "env",
        "tty",
        "pipeStdin",
        "size",
        "signal",
        "chunk",
        "writeId",
        "closeStdin",
        "afterSeq",
        "maxBytes",
        "waitMs",
        "graceMs",
        "tree",
        "timeoutMs",
        "seq",
        "resumeSessionId",
        "delivery",
        "takeover",
        "clientInfo",
        "handleId",
        "path",
        "offset",
        "len",
        "followSymlinks",
        "sandbox",
    ];
    let valid = json!({"processId": "a", "argv": ["cat"], "cwd": "file:///tmp", "pipeStdin": true,
        "processHandle": "a", "streamStdin": true, "deltaBase64": "aGVsbG8K",
        "signal": "interrupt", "chunk": "aGVsbG8K", "writeId": "w", "waitMs": 1, "seq": 1,
        "handleId": "a", "path": "file:///proc/self/status", "offset": 0, "len": 10});
    let params = proptest::collection::btree_map(
        proptest::sample::select(members.to_vec()),
        any_member(),
        0..4,
    )
    .prop_map(move |changed| {
        let mut params = valid.clone();
        for (name, value) in changed {
            params[name] = value;
        }
        params
    });
    let id = proptest::option::weighted(0.95, 0_i64..100);
    let process = proptest::sample::select(vec!["a", "b", "c", "d", "e"]);
    (proptest::sample::select(&METHODS[..]), process, params, id).prop_map(
        |(method, process, mut params, id)| {
            for name in ["processId", "processHandle"] {
                if params[name] == "a" {
                    params[name] = process.into();
                }
            }
            // The other dialects call it `command`, and use native paths.
            if method != "process/start" && id.is_some_and(|id| id % 3 != 0) {
                params["command"] = params["argv"].take();
                params["cwd"] = json!("/tmp");
            }
            match id {
                Some(id) => json!({"id": id, "method": method, "params": params}),
                None => json!({"method": method, "params": params}),
            }
        },
    )
}

fn any_message() -> impl Strategy<Value = TestMessage> {
    prop_oneof![
        1 => proptest::collection::vec(any::<u8>(), 0..200).prop_map(TestMessage::Bytes),
        2 => any_json().prop_map(TestMessage::Json),
        12 => any_method().prop_map(TestMessage::Method),
    ]
}

async fn send_all(server: &Server, handshake: bool, messages: Vec<TestMessage>, raw: Vec<u8>) {
    let mut peer = Peer::connect(server);
    if handshake {
        let params = json!({"clientName": "fuzz", "capabilities": {"experimentalApi": true}});
        peer.initialize(params).await;
    }
    for message in messages {
        let sent = match message {
            TestMessage::Bytes(bytes) => peer.try_send(&bytes).await,
            TestMessage::Json(value) | TestMessage::Method(value) => {
                peer.try_send(value.to_string().as_bytes()).await
            }
        };
        sent.expect("a well-framed message does not close the connection");
    }
    // This connection still responds.
    let response = peer
        .call_with_id(json!("last"), "environment/status", json!({}))
        .await;
    assert!(
        response["result"]["status"] == "ready" || response["error"]["code"] == -32600,
        "{response}"
    );
    // Invalid frames may end it.
    let _ = peer.try_send_raw(&raw).await;
    // Other connections still work.
    let mut other = Peer::connect(server);
    other.initialize(json!({"clientName": "bystander"})).await;
    let status = other.call("environment/status", json!({})).await;
    assert_eq!(status["result"]["status"], "ready");
    other.call("session/close", json!({})).await;
}

#[test]
fn arbitrary_messages_do_not_affect_server_or_other_clients() {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(async {
        let quick = Settings {
            session_ttl: std::time::Duration::ZERO,
            ..Settings::default()
        };
        server(quick)
    });
    let config = ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(handshake in proptest::bool::weighted(0.8), messages in proptest::collection::vec(any_message(), 1..60), raw in proptest::collection::vec(any::<u8>(), 0..40))| {
        runtime.block_on(async {
            let all = send_all(&server, handshake, messages, raw);
            tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("no hang");
        });
    });
    assert!(
        runtime.block_on(server.shutdown()),
        "all processes have ended"
    );
}
