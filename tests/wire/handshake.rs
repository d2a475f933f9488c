//! Tests `initialize`, `initialized`, and requests before the handshake.

use outpost_testkit::RpcError;
use serde_json::{Value, json};

use crate::{outpost, over_each_transport, ready};

/// A method of each family with valid params, and the family's name in errors.
fn families() -> Vec<(&'static str, Value, &'static str)> {
    let about = json!({"processId": "p"});
    let start = json!({"processId": "p", "argv": ["true"], "cwd": "file:///tmp", "env": {}});
    vec![
        ("process/start", start, "exec"),
        ("process/read", about.clone(), "exec"),
        (
            "process/write",
            json!({"processId": "p", "chunk": ""}),
            "exec",
        ),
        (
            "process/signal",
            json!({"processId": "p", "signal": "interrupt"}),
            "exec",
        ),
        ("process/terminate", about, "exec"),
        (
            "process/resize",
            json!({"processId": "p", "size": {"rows": 1, "cols": 1}}),
            "exec",
        ),
        ("process/list", json!({}), "exec"),
        (
            "fs/readFile",
            json!({"path": "file:///etc/hostname"}),
            "filesystem",
        ),
        (
            "fs/getMetadata",
            json!({"path": "file:///etc/hostname"}),
            "filesystem",
        ),
        (
            "http/request",
            json!({"method": "GET", "url": "http://127.0.0.1:1/"}),
            "http",
        ),
        ("environment/info", json!({}), "environment info"),
        ("environment/status", json!({}), "environment status"),
        (
            "environmentConfig/read",
            json!({"cwd": "file:///", "configPaths": [], "requirementsPaths": []}),
            "environment config",
        ),
        (
            "capabilityRoots/discoverV1",
            json!({"roots": []}),
            "capability discovery",
        ),
        (
            "capabilities/discoverV2",
            json!({"cwd": "file:///"}),
            "capability discovery",
        ),
    ]
}

fn is_uuid_v4(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    let hexadecimal = text
        .chars()
        .all(|c| c == '-' || (c.is_ascii_hexdigit() && !c.is_ascii_uppercase()));
    groups == [8, 4, 4, 4, 12]
        && hexadecimal
        && text.as_bytes()[14] == b'4'
        && matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b')
}

#[tokio::test]
async fn initialize_result_serves_every_client() {
    over_each_transport(async |_, client| {
        let response = client.handshake().await;
        let text = |name: &str| response[name].as_str().unwrap_or_default().to_owned();
        assert!(is_uuid_v4(&text("sessionId")), "{response}");
        assert_eq!(text("protocolVersion"), "exec-server.v0");
        assert_eq!(response["serverInfo"]["name"], "outpost");
        let version = response["serverInfo"]["version"]
            .as_str()
            .expect("a version");
        assert_eq!(text("userAgent"), format!("outpost/{version}"));
        assert!(text("codexHome").starts_with('/'), "{response}");
        assert_eq!(text("platformOs"), "linux");
        assert_eq!(text("platformFamily"), "unix");
        let info = client.call("environment/info", json!({})).await;
        assert_eq!(response["environmentInfo"], info);
    })
    .await;
}

#[tokio::test]
async fn initialize_announces_extensions() {
    let server = outpost().start().await;
    let response = server.connect().await.handshake().await;
    let capabilities = response["capabilities"].as_object().expect("an object");
    let mut names: Vec<_> = capabilities.keys().map(String::as_str).collect();
    names.sort_unstable();
    let all = [
        "acked",
        "binaryFrames",
        "closeStdin",
        "fsWatch",
        "fsWriteStream",
        "limits",
        "networkPolicies",
        "processList",
        "processNetwork",
        "resize",
        "sessionList",
        "signals",
        "strict",
        "takeover",
        "terminateTree",
        "timeouts",
    ];
    assert_eq!(names, all);
    assert!(capabilities.values().all(Value::is_boolean));
    for works in [
        "closeStdin",
        "fsWatch",
        "fsWriteStream",
        "networkPolicies",
        "processList",
        "processNetwork",
        "resize",
        "signals",
        "strict",
        "terminateTree",
        "timeouts",
    ] {
        assert_eq!(capabilities[works], true, "{works}");
    }
}

#[tokio::test]
async fn both_kinds_of_clients_are_understood() {
    let server = outpost().start().await;
    let introductions = [
        json!({"clientName": "x", "resumeSessionId": null}),
        json!({"clientName": "x"}),
        json!({"clientInfo": {"name": "x", "title": null, "version": "1"},
               "capabilities": {"experimentalApi": true}}),
        json!({"clientInfo": {"name": "x", "title": "X", "version": "1"}, "capabilities": null}),
        json!({"clientInfo": {"name": "x", "version": "1"}}),
    ];
    let mut sessions = Vec::new();
    for introduction in introductions {
        let client = server.connect().await;
        let response = client.call("initialize", introduction).await;
        client.notify("initialized", json!({})).await;
        client.check_alive().await;
        sessions.push(response["sessionId"].to_string());
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 5, "each has its own session");
}

#[tokio::test]
async fn second_initialize_is_rejected_in_the_clients_words() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let exec = json!({"clientName": "x"});
    let app = json!({"clientInfo": {"name": "x", "version": "1"}});
    client.call("initialize", exec.clone()).await;
    for _ in 0..2 {
        let error = client.call_fails("initialize", exec.clone()).await;
        let expected = "initialize may only be sent once per connection";
        assert_eq!(error.parts(), (-32600, expected));
        let error = client.call_fails("initialize", app.clone()).await;
        assert_eq!(error.parts(), (-32600, "Already initialized"));
        client.notify("initialized", json!({})).await;
    }
    client.check_alive().await;
}

#[tokio::test]
async fn second_initialize_is_rejected_before_its_params() {
    let (_server, client) = ready().await;
    for (params, message) in [
        (
            json!({"clientName": 7}),
            "initialize may only be sent once per connection",
        ),
        (json!([]), "initialize may only be sent once per connection"),
        (
            json!({"clientName": 7, "clientInfo": {"name": 7}}),
            "Already initialized",
        ),
    ] {
        let error = client.call_fails("initialize", params).await;
        assert_eq!(error.parts(), (-32600, message));
    }
}

#[tokio::test]
async fn session_label_is_bounded() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let labelled = |bytes| json!({"clientName": "x", "sessionLabel": "x".repeat(bytes)});
    let error = client.call_fails("initialize", labelled(1025)).await;
    let expected = "sessionLabel must be at most 1024 bytes long";
    assert_eq!(error.parts(), (-32602, expected));
    client.call("initialize", labelled(1024)).await;
}

#[tokio::test]
async fn config_directory_is_absolute() {
    let launch = outpost()
        .env("HOME", "somewhere")
        .env("XDG_CONFIG_HOME", "else");
    let server = launch.start().await;
    let client = server.connect().await;
    let response = client.call("initialize", json!({"clientName": "x"})).await;
    assert_eq!(response["codexHome"], "/etc/outpost");
}

#[tokio::test]
async fn failed_initialize_can_be_retried() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let error = client
        .call_fails("initialize", json!({"clientName": 7}))
        .await;
    assert_eq!(error.code, -32602);
    client.handshake().await;
    client.check_alive().await;
}

#[tokio::test]
async fn methods_before_initialize_name_their_family() {
    over_each_transport(async |_, client| {
        for (method, params, family) in families() {
            let error = client.call_fails(method, params).await;
            let expected = format!("client must call initialize before using {family} methods");
            assert_eq!(error.parts(), (-32600, &*expected), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn methods_before_initialized_name_their_family() {
    over_each_transport(async |_, client| {
        client.call("initialize", json!({"clientName": "x"})).await;
        for (method, params, family) in families() {
            let error = client.call_fails(method, params).await;
            let expected = format!("client must send initialized before using {family} methods");
            assert_eq!(error.parts(), (-32600, &*expected), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn other_dialects_are_rejected_before_initialize() {
    let server = outpost().start().await;
    let client = server.connect().await;
    for method in [
        "command/exec",
        "command/exec/write",
        "process/spawn",
        "process/kill",
        "config/read",
    ] {
        let error = client.call_fails(method, json!({})).await;
        assert_eq!(error.parts(), (-32600, "Not initialized"), "{method}");
    }
}

#[tokio::test]
async fn handshake_errors_follow_wire_order() {
    over_each_transport(async |_, client| {
        let too_early = client.request("environment/info", json!({})).await;
        let initialize = client
            .request("initialize", json!({"clientName": "x"}))
            .await;
        let early = client.request("environment/info", json!({})).await;
        client.notify("initialized", json!({})).await;
        let in_time = client.request("environment/info", json!({})).await;

        let error = client.response(too_early).await.unwrap_err();
        let expected = "client must call initialize before using environment info methods";
        assert_eq!(error.parts(), (-32600, expected));
        assert!(client.response(initialize).await.is_ok());
        let error = client.response(early).await.unwrap_err();
        let expected = "client must send initialized before using environment info methods";
        assert_eq!(error.parts(), (-32600, expected));
        assert!(client.response(in_time).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn rejected_early_requests_have_no_effect() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let file = server.dir().join("touched");
    let start = json!({
        "processId": "p", "argv": ["touch", file], "cwd": "file:///tmp", "env": {},
    });
    client.call_fails("process/start", start.clone()).await;
    client.call("initialize", json!({"clientName": "x"})).await;
    client.call_fails("process/start", start.clone()).await;
    client.notify("initialized", json!({})).await;
    assert_eq!(client.listed("p").await, None);
    assert!(!file.exists());
    client.call("process/start", start).await;
    client.closed("p").await;
    assert!(file.exists());
}

#[tokio::test]
async fn unexpected_notification_is_answered() {
    over_each_transport(async |_, client| {
        client.notify("initialized", json!({})).await;
        let error = RpcError::parse(&client.error_without_id(0).await);
        let expected = "unexpected notification method: initialized";
        assert_eq!(error.parts(), (-32600, expected));
        client.handshake().await;
        for (nth, method) in ["what/ever", "process/start", ""].iter().enumerate() {
            client.notify(method, json!({"processId": "p"})).await;
            let error = RpcError::parse(&client.error_without_id(nth + 1).await);
            let expected = format!("unexpected notification method: {method}");
            assert_eq!(error.parts(), (-32600, &*expected));
        }
        client.check_alive().await;
    })
    .await;
}

#[tokio::test]
async fn unknown_session_cannot_be_resumed() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let unknown = "11111111-2222-4333-8444-555555555555";
    let error = client
        .call_fails(
            "initialize",
            json!({"clientName": "x", "resumeSessionId": unknown}),
        )
        .await;
    let expected = format!("unknown session id {unknown}");
    assert_eq!(error.parts(), (-32600, &*expected));
    client.handshake().await;
}

#[tokio::test]
async fn params_are_decoded_before_the_handshake_is_checked() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let bad = json!({"processId": 7, "argv": ["true"], "cwd": "file:///tmp"});
    let error = client.call_fails("process/start", bad).await;
    assert_eq!(
        error.parts(),
        (-32602, "invalid type: number, expected a string")
    );
    let error = client.call_fails("process/read", json!({})).await;
    assert_eq!(error.parts(), (-32602, "missing field `processId`"));
    let negative = json!({"processId": "p", "afterSeq": -1});
    let error = client.call_fails("process/read", negative).await;
    assert_eq!(error.parts(), (-32602, "invalid number"));
    let native = json!({"path": "/etc/hostname"});
    let error = client.call_fails("fs/readFile", native).await;
    let text = "invalid URI: relative URL without a base";
    assert_eq!(error.parts(), (-32602, text));
    let good = json!({"processId": "p"});
    let error = client.call_fails("process/read", good).await;
    let text = "client must call initialize before using exec methods";
    assert_eq!(error.parts(), (-32600, text));
}
