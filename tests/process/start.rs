//! Tests the params and the response of `process/start`.

use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn response_has_id_and_sandbox_type() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let response = client.start(Start::new("p", &["true"])).await;
        assert_eq!(response, json!({"processId": "p", "sandboxType": "none"}));
        client.closed("p").await;
    })
    .await;
}

#[tokio::test]
async fn response_precedes_the_first_event() {
    let (_server, client) = ready().await;
    for n in 0..30 {
        let id = format!("p{n}");
        let request = client.request_start(Start::new(&id, &["echo", "x"])).await;
        client.closed(&id).await;
        let received = client.received();
        let response = received.iter().position(|message| message["id"] == request);
        let event = received
            .iter()
            .position(|message| message["params"]["processId"] == json!(id));
        assert!(response < event, "{id}: {response:?} and {event:?}");
    }
}

#[tokio::test]
async fn optional_params_may_be_null() {
    let (_server, client) = ready().await;
    let mut start = sh("p", "printf fine");
    let optional = [
        "envPolicy",
        "arg0",
        "sandbox",
        "managedNetwork",
        "metadata",
        "size",
        "timeoutMs",
        "retainBytes",
        "killGraceMs",
        "limits",
        "tty",
        "pipeStdin",
        "enforceManagedNetwork",
    ];
    for name in optional {
        start = start.with(name, json!(null));
    }
    let log = client.run(start).await;
    assert_eq!((log.stdout().as_str(), log.code()), ("fine", 0));
}

#[tokio::test]
async fn optional_params_may_be_absent() {
    let (_server, client) = ready().await;
    let start = sh("p", "printf fine")
        .without("tty")
        .without("pipeStdin")
        .without("arg0");
    let log = client.run(start).await;
    assert_eq!((log.stdout().as_str(), log.code()), ("fine", 0));
}

#[tokio::test]
async fn released_clients_params_are_accepted() {
    let (_server, client) = ready().await;
    let start = sh("31830-03850944-815b-4c67-b201-07b591e6b20c", "printf fine")
        .with(
            "metadata",
            json!({
                "threadId": "03850944-815b-4c67-b201-07b591e6b20c", "toolCallId": "call-0",
                "": "", "later": 1,
            }),
        )
        .with(
            "envPolicy",
            json!({
                "inherit": "all", "ignoreDefaultExcludes": true, "exclude": ["A", "B*"],
                "set": {}, "includeOnly": [],
            }),
        )
        .with("sandbox", json!(null))
        .with("enforceManagedNetwork", false)
        .with("managedNetwork", json!(null));
    assert_eq!(client.run(start).await.stdout(), "fine");
}

#[tokio::test]
async fn thread_id_must_be_a_uuid() {
    let (_server, client) = ready().await;
    let start = sh("p", "true").with("metadata", json!({"threadId": "not-a-uuid"}));
    let error = client.start_fails(start).await;
    assert_eq!(
        error.parts(),
        (
            -32602,
            "invalid character: expected an optional prefix of `urn:uuid:` followed by \
             [0-9a-fA-F-], found `n` at 1"
        )
    );
    let start = sh("p", "true").with("metadata", json!({"threadId": 7}));
    let error = client.start_fails(start).await;
    assert_eq!(error.message, "invalid type: number, expected a string");
}

#[tokio::test]
async fn argv_must_not_be_empty() {
    let (_server, client) = ready().await;
    let error = client.start_fails(Start::new("p", &[])).await;
    assert_eq!(error.parts(), (-32602, "argv must not be empty"));
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn arguments_arrive_unchanged() {
    let (_server, client) = ready().await;
    let arguments = [
        "", " ", "a b", "ünï", "$HOME", "`x`", "\"q\"", "'", "*", "\\", "\n", "-n",
    ];
    let argv = [&["printf", "[%s]"], &arguments[..]].concat();
    let log = client.run(Start::new("p", &argv)).await;
    let expected: String = arguments
        .iter()
        .map(|argument| format!("[{argument}]"))
        .collect();
    assert_eq!(log.text(), expected);
}

#[tokio::test]
async fn arg0_is_the_childs_name() {
    let (_server, client) = ready().await;
    let show = "tr '\\0' '|' < /proc/$$/cmdline";
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = sh(id, show).with("arg0", "-fancy name").with("tty", tty);
        let log = client.run(start).await;
        let expected = format!("-fancy name|-c|{show}|");
        assert_eq!(log.text(), expected);
    }
}

#[tokio::test]
async fn size_needs_a_tty_and_nonzero_values() {
    let (_server, client) = ready().await;
    let size = |rows: u16, cols: u16| json!({"rows": rows, "cols": cols});
    let rejected = [
        sh("p", "true").with("size", size(24, 80)),
        sh("p", "true").tty().with("size", size(0, 80)),
        sh("p", "true").tty().with("size", size(24, 0)),
        sh("p", "true").tty().with("size", size(0, 0)),
    ];
    for start in rejected {
        assert_eq!(client.start_fails(start).await.code, -32602);
    }
    assert_eq!(client.listed("p").await, None);
    let log = client
        .run(sh("p", "stty size").tty().with("size", size(1, 65535)))
        .await;
    assert_eq!(log.text(), "1 65535\r\n");
}
