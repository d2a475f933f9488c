//! Tests that a principal does not see what the processes of others reach.

use outpost_testkit::sh;
use serde_json::json;

use super::support::Directories;

#[tokio::test]
async fn networks_of_other_principals_are_like_unknown_ones() {
    let directories = Directories::new();
    let (alice, bob, root) = (
        directories.token("alice").await,
        directories.token("bob").await,
        directories.token("root").await,
    );
    let config = "[principals.root]\nscopes = [\"exec\", \"admin\"]\n\
                  [principals.files]\nscopes = [\"files:read\"]\n";
    let files = directories.token("files").await;
    let server = directories.server(config).start().await;
    let owner = server.connect_with_token(&alice).await;
    let session = owner.handshake().await["sessionId"].clone();
    let url = "http://denied.test/";
    let start = sh("p", &format!("curl -s -o /dev/null {url}; true"));
    owner
        .run(start.with("network", json!({"allow": ["a.test"]})))
        .await;
    let bob = server.client_with_token(&bob).await;
    let own = bob
        .call_fails("process/network", json!({"processId": "p"}))
        .await;
    assert_eq!(own.parts(), (-32600, "unknown process id p"));
    let none = "8d0f6b0e-25c1-4c8c-9f5a-0d3f6d2a9c11";
    for session in [session.as_str().expect("an id"), none] {
        let params = json!({"processId": "p", "sessionId": session});
        let error = bob.call_fails("process/network", params).await;
        let message = format!("unknown session id {session}");
        assert_eq!(error.parts(), (-32600, &*message));
    }
    let params = json!({"processId": "p", "sessionId": session});
    let files = server.client_with_token(&files).await;
    let error = files.call_fails("process/network", params.clone()).await;
    assert_eq!(error.parts().0, -32011, "{error:?}");
    let root = server.client_with_token(&root).await;
    let seen = root.call("process/network", params).await;
    assert_eq!(seen["decisions"][0]["host"], "denied.test");
}
