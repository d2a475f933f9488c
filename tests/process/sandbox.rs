//! Tests `sandbox`: a policy that can't be enforced fails the start.

use outpost_testkit::{Start, sh};
use serde_json::{Value, json};

use crate::{outpost, ready};

fn managed_sandbox() -> Value {
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
            ]},
            "network": "restricted",
        },
        "cwd": "file:///tmp",
        "workspaceRoots": ["file:///tmp"],
        "windowsSandboxLevel": "disabled",
        "useLegacyLandlock": false,
    })
}

#[tokio::test]
async fn unenforceable_sandbox_is_rejected() {
    let server = outpost().env("PATH", "/nowhere").start().await;
    let client = server.client().await;
    let file = server.dir().join("touched");
    for tty in [false, true] {
        let script = format!("touch {}", file.display());
        let start = sh("p", &script)
            .with("sandbox", managed_sandbox())
            .with("tty", tty);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602);
        let message = "sandbox intent cannot be enforced on this executor: ";
        assert!(error.message.starts_with(message), "{}", error.message);
        let missing = "install the package bubblewrap";
        assert!(error.message.ends_with(missing), "{}", error.message);
    }
    assert_eq!(client.listed("p").await, None);
    assert!(!file.exists());
}

#[tokio::test]
async fn disabled_and_external_sandboxes_run_unsandboxed() {
    let (_server, client) = ready().await;
    for kind in ["disabled", "external"] {
        let mut sandbox = managed_sandbox();
        sandbox["permissions"] = json!({"type": kind});
        let start = sh(kind, "echo permission denied; exit 1")
            .with("sandbox", sandbox)
            .with(
                "managedNetwork",
                json!({"loopbackPorts": [1], "allowLocalBinding": true}),
            );
        let response = client.start(start).await;
        assert_eq!(response, json!({"processId": kind, "sandboxType": "none"}));
        client.closed(kind).await;
        let read = client.read(kind, json!({})).await;
        assert_eq!(read["sandboxDenied"], false);
    }
}

#[tokio::test]
async fn unknown_sandbox_kind_is_32602() {
    let (_server, client) = ready().await;
    let sandboxes = [
        json!({}),
        json!({"permissions": null}),
        json!({"permissions": {}}),
        json!({"permissions": {"type": "whatever"}}),
        json!({"permissions": "disabled"}),
    ];
    for sandbox in sandboxes {
        let start = Start::new("p", &["true"]).with("sandbox", sandbox.clone());
        assert_eq!(client.start_fails(start).await.code, -32602, "{sandbox}");
    }
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn missing_directory_is_reported_as_without_a_sandbox() {
    let (_server, client) = ready().await;
    let start = || Start::new("p", &["true"]).with("cwd", "file:///no/such/place");
    let free = client.start_fails(start()).await;
    let mut writable = managed_sandbox();
    writable["workspaceRoots"] = json!(["file:///no/such/place"]);
    let entry = json!({
        "path": {"type": "special", "value": {"kind": "project_roots"}}, "access": "write",
    });
    let entries = &mut writable["permissions"]["file_system"]["entries"];
    entries.as_array_mut().expect("a list").push(entry);
    for sandbox in [managed_sandbox(), writable] {
        let sandboxed = client.start_fails(start().with("sandbox", sandbox)).await;
        assert_eq!(sandboxed.parts(), free.parts());
    }
}
