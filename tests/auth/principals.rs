//! Tests that principals are kept apart, and that scopes hold.

use outpost_testkit::{file_uri, sh};
use serde_json::json;

use super::support::Directories;

#[tokio::test]
async fn principals_cannot_reach_each_other() {
    let directories = Directories::new();
    let first = directories.token("first").await;
    let second = directories.token("second").await;
    let server = directories.server("").start().await;
    let owner = server.connect_with_token(&first).await;
    let session = owner.handshake().await["sessionId"].clone();
    owner.start(sh("p", "echo secret; cat").stdin()).await;
    owner.wait_output("p", "secret").await;

    let stranger = server.connect_with_token(&second).await;
    let resume = |takeover: bool| json!({"clientName": "x", "resumeSessionId": session, "takeover": takeover});
    let unknown =
        json!({"clientName": "x", "resumeSessionId": "2d4c57aa-6de0-4aef-9106-4dfcffa4818b"});
    let expected = stranger.call_fails("initialize", unknown).await;
    for takeover in [false, true] {
        let error = stranger.call_fails("initialize", resume(takeover)).await;
        assert_eq!(error.parts().0, expected.parts().0);
        let id = session.as_str().expect("an id");
        let text = expected.parts().1;
        let text = text.replace("2d4c57aa-6de0-4aef-9106-4dfcffa4818b", id);
        assert_eq!(
            error.parts().1,
            text,
            "as for a session that does not exist"
        );
    }
    stranger.handshake().await;
    for (method, params) in [
        (
            "process/read",
            json!({"processId": "p", "sessionId": session}),
        ),
        (
            "process/terminate",
            json!({"processId": "p", "sessionId": session}),
        ),
        ("session/close", json!({"sessionId": session})),
    ] {
        let error = stranger.call_fails(method, params).await;
        let id = session.as_str().expect("an id");
        let text = format!("unknown session id {id}");
        assert_eq!(error.parts(), (-32600, &*text), "{method}");
    }
    let listed = stranger.call("session/list", json!({})).await;
    let listed = listed["sessions"].as_array().expect("sessions");
    assert!(listed.iter().all(|entry| entry["sessionId"] != session));
    assert_eq!(stranger.listed("p").await, None);
    owner.check_alive().await;
    // Another connection of the same principal sees the session and its process.
    let again = server.client_with_token(&first).await;
    let listed = again.call("session/list", json!({})).await;
    let listed = listed["sessions"].as_array().expect("sessions");
    assert!(listed.iter().any(|entry| entry["sessionId"] == session));
    let read = json!({"processId": "p", "sessionId": session});
    let page = again.call("process/read", read).await;
    assert_eq!(page["chunks"][0]["chunk"], "c2VjcmV0Cg==", "{page}");
    assert!(owner.terminate("p").await);
}

#[tokio::test]
async fn request_outside_the_scope_is_refused() {
    let directories = Directories::new();
    let narrowed = ["--scopes", "files:read,exec"];
    let reader = directories.token_with("reader", &narrowed).await;
    let server = directories
        .server("[principals.reader]\nscopes = [\"files:read\"]\n")
        .start()
        .await;
    let client = server.client_with_token(&reader).await;
    let error = client.start_fails(sh("p", "true")).await;
    assert_eq!(error.parts(), (-32011, "not permitted: exec is required"));
    let uri = file_uri(&directories.path("x"));
    for (method, scope, params) in [
        (
            "fs/writeFile",
            "files:write",
            json!({"path": uri, "dataBase64": ""}),
        ),
        ("fs/remove", "files:write", json!({"path": uri})),
        (
            "fs/open",
            "files:write",
            json!({"handleId": "h", "path": uri, "mode": "replace"}),
        ),
        (
            "http/request",
            "http",
            json!({"requestId": "r", "method": "GET", "url": "http://127.0.0.1:1/"}),
        ),
        ("command/exec", "exec", json!({"command": ["true"]})),
    ] {
        let id = client.request(method, params).await;
        let message = client.response_message(id).await;
        let data = &message["error"]["data"];
        assert_eq!(
            data,
            &json!({"kind": "forbidden", "scope": scope}),
            "{method}"
        );
    }
    let listed = client.call(
        "fs/readDirectory",
        json!({"path": file_uri(&directories.path("outside"))}),
    );
    assert!(
        listed.await["entries"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    );
}

#[tokio::test]
async fn admin_sees_and_ends_the_work_of_others() {
    let directories = Directories::new();
    let (ci, root) = (
        directories.token("ci").await,
        directories.token("root").await,
    );
    let server = directories
        .server("[principals.root]\nscopes = [\"admin\", \"exec\"]\n")
        .start()
        .await;
    let worker = server.connect_with_token(&ci).await;
    let session = worker.handshake().await["sessionId"].clone();
    worker.start(sh("p", "cat").stdin()).await;
    let admin = server.client_with_token(&root).await;
    let list = admin.call("session/list", json!({})).await;
    let sessions = list["sessions"].as_array().expect("sessions");
    assert!(sessions.iter().any(|entry| entry["sessionId"] == session));
    let end = json!({"processId": "p", "sessionId": session});
    assert_eq!(admin.call("process/terminate", end).await["running"], true);
    worker.closed("p").await;
}
