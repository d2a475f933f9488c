//! What a command is confined to: nothing can be yet, so who wants it is refused.

use serde_json::json;

use super::face::introduce;
use crate::outpost;

#[tokio::test]
async fn what_asks_for_no_sandbox_of_ours_runs() {
    let server = outpost().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    for more in [
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}),
        json!({"permissionProfile": ":danger-full-access"}),
        json!({}),
    ] {
        let mut params = more.clone();
        params["command"] = json!(["sh", "-c", "exit 5"]);
        let answer = client.call("command/exec", params).await;
        assert_eq!(answer["exitCode"], 5, "{more}");
    }
}

#[tokio::test]
async fn what_can_not_be_enforced_does_not_start() {
    let server = outpost().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let file = server.folder().join("touched");
    let refused = "sandbox intent cannot be enforced on this executor: ";
    for (more, expected) in [
        (
            json!({"sandboxPolicy": {"type": "readOnly"}}),
            format!("invalid sandbox policy: {refused}readOnly"),
        ),
        (
            json!({"sandboxPolicy": {
                "type": "workspaceWrite", "writableRoots": ["/tmp"], "networkAccess": false,
                "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
            }}),
            format!("invalid sandbox policy: {refused}workspaceWrite"),
        ),
        (
            json!({"permissionProfile": ":read-only"}),
            format!("invalid permission profile: {refused}:read-only"),
        ),
        (
            json!({"permissionProfile": ":workspace"}),
            format!("invalid permission profile: {refused}:workspace"),
        ),
        (
            json!({"permissionProfile": "nobody-s"}),
            "invalid permission profile: there is no profile \"nobody-s\"".to_owned(),
        ),
    ] {
        let mut params = more.clone();
        params["command"] = json!(["touch", file]);
        let error = client.fails("command/exec", params).await;
        assert_eq!(error.code, -32600, "{more}");
        assert!(error.message.starts_with(&expected), "{error:?}");
    }
    for policy in [
        json!({"type": "none"}),
        json!({}),
        json!("readOnly"),
        json!(["dangerFullAccess"]),
        json!({"type": "workspaceWrite", "writableRoots": ["relative"]}),
        json!({"type": "externalSandbox", "networkAccess": "some"}),
    ] {
        let params = json!({"command": ["touch", file], "sandboxPolicy": policy});
        let error = client.fails("command/exec", params).await;
        assert_eq!(error.code, -32600, "{policy}");
        assert!(error.message.starts_with("Invalid request: "), "{error:?}");
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn a_policy_and_a_profile_exclude_each_other() {
    let server = outpost().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let params = json!({
        "command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"},
        "permissionProfile": ":danger-full-access",
    });
    let error = client.fails("command/exec", params).await;
    let expected = "`permissionProfile` cannot be combined with `sandboxPolicy`";
    assert_eq!(error.parts(), (-32600, expected));
}

#[tokio::test]
async fn profiles_need_the_experimental_api() {
    let server = outpost().start().await;
    let client = server.client().await;
    let params = json!({"command": ["true"], "permissionProfile": ":danger-full-access"});
    let error = client.fails("command/exec", params).await;
    let expected = "command/exec.permissionProfile requires experimentalApi capability";
    assert_eq!(error.parts(), (-32600, expected));
    let params = json!({"command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"}});
    assert_eq!(client.call("command/exec", params).await["exitCode"], 0);
}
