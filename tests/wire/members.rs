//! Unknown and misspelt members of params.

use outpost_testkit::{Transport, sh};
use serde_json::json;

use crate::{outpost, ready, unsandboxed_outpost};

#[tokio::test]
async fn misspelt_sandbox_does_not_start_the_process() {
    let (_server, client) = ready().await;
    let misspelt = sh("p", "echo free").with("sandBox", json!({"permissions": {}}));
    let error = client.start_fails(misspelt).await;
    assert_eq!(error.code, -32602);
    let text = r#"unknown member "sandBox"; did you mean "sandbox"?"#;
    assert_eq!(error.message, text);
    assert!(client.listed("p").await.is_none());
    let misspelt = json!({"path": "file:///etc/passwd", "sandBox": {}});
    let error = client.call_fails("fs/readFile", misspelt).await;
    assert_eq!((error.code, error.message.as_str()), (-32602, text));
    // A file operation is parsed in another way.
    let misspelt = json!({"path": "file:///etc", "sandBox": {}});
    let error = client.call_fails("fs/readDirectory", misspelt).await;
    assert_eq!((error.code, error.message.as_str()), (-32602, text));
    // An unknown member that resembles none is ignored.
    let later = sh("q", "echo hi").with("later", json!({"sandBox": 1}));
    assert_eq!(client.run(later).await.text(), "hi\n");
}

#[tokio::test]
async fn misspelt_members_of_other_dialects_are_invalid_requests() {
    let server = unsandboxed_outpost().start().await;
    let client = server.client().await;
    let misspelt = json!({"command": ["true"], "sandboxpolicy": {"type": "readOnly"}});
    let error = client.call_fails("command/exec", misspelt).await;
    assert_eq!(error.code, -32600);
    let text = r#"Invalid request: unknown member "sandboxpolicy"; did you mean "sandboxPolicy"?"#;
    assert_eq!(error.message, text);
}

#[tokio::test]
async fn strict_connection_rejects_all_unknown_members() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let later = json!({"clientName": "x", "strict": true, "later": 1});
    let error = client.call_fails("initialize", later).await;
    assert_eq!(error.code, -32602);
    assert_eq!(error.message, r#"unknown member "later""#);
    let misspelt = json!({"clientName": "x", "Strict": true});
    let error = client.call_fails("initialize", misspelt).await;
    let text = r#"unknown member "Strict"; did you mean "strict"?"#;
    assert_eq!(error.message, text);
    // A rejected handshake can be repeated.
    let params = json!({"clientName": "x", "strict": true});
    client.call("initialize", params).await;
    client.notify("initialized", json!({})).await;
    let error = client
        .start_fails(sh("p", "echo hi").with("later", 1))
        .await;
    assert_eq!(error.message, r#"unknown member "later""#);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    let ack = json!({"processId": "p", "seq": 1, "later": 1});
    client.notify("process/ack", ack).await;
    let error = client.error_without_id(0).await;
    let text = r#"invalid params of process/ack: unknown member "later""#;
    assert_eq!(error["error"]["message"], text);
    // Another connection isn't strict.
    let other = server.client().await;
    let later = sh("p", "echo hi").with("later", 1);
    assert_eq!(other.run(later).await.text(), "hi\n");
}

#[tokio::test]
async fn members_of_the_first_protocol_are_known() {
    let server = outpost().on(Transport::Stdio).start().await;
    let client = server.client().await;
    let params = json!({"processId": "1", "argv": ["true"], "cwd": "/", "env": {}, "arg0": "x"});
    client.call("command/exec", params).await;
    let misspelt = json!({"processId": "2", "argv": ["true"], "cwd": "/", "arg_0": "x"});
    let error = client.call_fails("command/exec", misspelt).await;
    let text = r#"Invalid request: unknown member "arg_0"; did you mean "arg0"?"#;
    assert_eq!(error.message, text);
}
