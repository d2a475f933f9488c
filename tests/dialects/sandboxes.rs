//! Tests the sandbox of a command: from its params, or else the server's default.

use std::{fs, path::Path};

use outpost_testkit::Client;
use serde_json::{Value, json};

use super::dialect::app_handshake;
use crate::{outpost, unsandboxed_outpost};

/// Runs a script in a directory and returns its exit code.
async fn sh(client: &Client, cwd: &Path, script: &str, more: &Value) -> i64 {
    let mut params = more.clone();
    params["command"] = json!(["/bin/sh", "-c", script]);
    params["cwd"] = json!(cwd);
    let response = client.call("command/exec", params).await;
    response["exitCode"].as_i64().expect("a number")
}

/// A policy that grants neither `/tmp` nor `$TMPDIR`.
fn workspace_write(more: Value) -> Value {
    let mut policy = json!({
        "type": "workspaceWrite", "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
    });
    for (name, value) in more.as_object().expect("an object") {
        policy[name] = value.clone();
    }
    json!({"sandboxPolicy": policy})
}

#[tokio::test]
async fn unsandboxed_policies_run_unsandboxed() {
    let server = outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    for more in [
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}),
        json!({"permissionProfile": ":danger-full-access"}),
    ] {
        let file = server.dir().join("touched");
        let script = format!("touch {} && exit 5", file.display());
        assert_eq!(
            sh(&client, Path::new("/"), &script, &more).await,
            5,
            "{more}"
        );
        fs::remove_file(&file).expect("created");
    }
}

#[tokio::test]
async fn command_writes_what_its_policy_grants() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let dir = server.dir();
    for name in ["ws", "more", "outside"] {
        fs::create_dir(dir.join(name)).expect("a directory");
    }
    let cwd = dir.join("ws");
    let granted = workspace_write(json!({"writableRoots": [dir.join("more")]}));
    let read_only = json!({"sandboxPolicy": {"type": "readOnly"}});
    let by_profile = json!({"permissionProfile": ":read-only"});
    for (more, path, works) in [
        (&granted, "ws/a", true),
        (&granted, "more/a", true),
        (&granted, "outside/a", false),
        (&granted, "ws/.git", false),
        (&granted, "more/.codex", false),
        (&read_only, "ws/b", false),
        (&by_profile, "ws/b", false),
    ] {
        let file = dir.join(path);
        let script = format!("echo x > {}", file.display());
        let code = sh(&client, &cwd, &script, more).await;
        assert_eq!((code == 0, file.exists()), (works, works), "{path} {more}");
    }
    // All of them allow reading.
    fs::write(dir.join("outside/seen"), "x").expect("a file");
    for more in [&granted, &read_only, &by_profile] {
        assert_eq!(sh(&client, &cwd, "cat ../outside/seen", more).await, 0);
    }
}

#[tokio::test]
async fn temporary_directories_are_granted_unless_excluded() {
    let dir = tempfile::tempdir().expect("a directory");
    let tmpdir = dir.path().join("of-child");
    fs::create_dir(&tmpdir).expect("a directory");
    let server = unsandboxed_outpost()
        .env("TMPDIR", tmpdir.to_str().expect("text"))
        .start()
        .await;
    let client = server.connect().await;
    app_handshake(&client).await;
    for (excludes, works) in [
        (json!({"excludeTmpdirEnvVar": false}), true),
        (json!({}), false),
    ] {
        let more = workspace_write(excludes);
        let code = sh(&client, Path::new("/usr"), "touch $TMPDIR/x", &more).await;
        assert_eq!(code == 0, works, "{more}");
    }
}

#[tokio::test]
async fn network_needs_a_grant() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let outside = fs::read_link("/proc/self/ns/net").expect("a namespace");
    for (more, same) in [
        (workspace_write(json!({"networkAccess": true})), true),
        (workspace_write(json!({"networkAccess": false})), false),
        (json!({"sandboxPolicy": {"type": "readOnly"}}), false),
        (
            json!({"sandboxPolicy": {"type": "readOnly", "networkAccess": true}}),
            true,
        ),
    ] {
        let mut params = more.clone();
        params["command"] = json!(["readlink", "/proc/self/ns/net"]);
        params["cwd"] = json!(server.dir());
        let response = client.call("command/exec", params).await;
        let inside = response["stdout"].as_str().expect("text").trim();
        assert_eq!(inside == outside.to_str().expect("text"), same, "{more}");
    }
}

#[tokio::test]
async fn default_is_the_workspace_profile() {
    let server = outpost().start().await;
    let client = server.client().await;
    let nothing = json!({});
    let cwd = server.dir();
    assert_eq!(
        sh(&client, cwd, "echo x > made && mkdir sub", &nothing).await,
        0
    );
    assert!(cwd.join("made").exists());
    assert_ne!(sh(&client, cwd, "mkdir .git", &nothing).await, 0);
    assert_ne!(sh(&client, cwd, "touch /usr/x", &nothing).await, 0);
    assert!(!cwd.join(".git").exists());
}

#[tokio::test]
async fn profiles_and_default_are_configurable() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("outpost.toml");
    let text = r#"
        [sandbox]
        default_profile = "docs"
        [sandbox.profiles.docs.files]
        ":root" = "read"
        ":project_roots/docs" = "write"
        "**/*.pem" = "deny"
    "#;
    fs::write(&file, text).expect("a file");
    let server = outpost()
        .args(&["--config", file.to_str().expect("text")])
        .start()
        .await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let cwd = server.dir();
    fs::create_dir(cwd.join("docs")).expect("a directory");
    fs::write(cwd.join("key.pem"), "secret").expect("a file");
    for more in [json!({}), json!({"permissionProfile": "docs"})] {
        assert_eq!(sh(&client, cwd, "echo x > docs/page", &more).await, 0);
        assert_ne!(sh(&client, cwd, "echo x > page", &more).await, 0);
        assert_ne!(sh(&client, cwd, "cat key.pem", &more).await, 0);
    }
    let workspace = json!({"permissionProfile": ":workspace"});
    assert_eq!(sh(&client, cwd, "cat key.pem", &workspace).await, 0);
}

#[tokio::test]
async fn unenforceable_policy_is_rejected_with_the_missing_part() {
    // Without a PATH, bubblewrap isn't found.
    let server = outpost().env("PATH", "/nowhere").start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let file = server.dir().join("touched");
    let command = json!(["/bin/sh", "-c", format!("> {}", file.display())]);
    for (more, what) in [
        (json!({}), "permission profile"),
        (
            json!({"permissionProfile": ":read-only"}),
            "permission profile",
        ),
        (
            json!({"sandboxPolicy": {"type": "readOnly"}}),
            "sandbox policy",
        ),
        (
            json!({"sandboxPolicy": {"type": "workspaceWrite"}}),
            "sandbox policy",
        ),
    ] {
        let mut params = more.clone();
        params["command"] = command.clone();
        let error = client.call_fails("command/exec", params).await;
        assert_eq!(error.code, -32600, "{more}");
        let expected = format!(
            "invalid {what}: sandbox intent cannot be enforced on this executor: bwrap isn't found"
        );
        assert!(error.message.starts_with(&expected), "{error:?}");
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn invalid_policy_is_rejected() {
    let server = outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let file = server.dir().join("touched");
    let params = json!({"command": ["touch", file], "permissionProfile": "unknown"});
    let error = client.call_fails("command/exec", params).await;
    let expected = "invalid permission profile: there is no profile \"unknown\"";
    assert_eq!(error.parts(), (-32600, expected));
    let gone = json!({"type": "workspaceWrite", "writableRoots": ["/no/such/folder"]});
    let params = json!({"command": ["touch", file], "cwd": "/usr", "sandboxPolicy": gone});
    let error = client.call_fails("command/exec", params).await;
    let expected = "invalid sandbox policy: failed to prepare process sandbox: /no/such/folder is to be written and does not exist";
    assert_eq!(error.parts(), (-32600, expected));
    for policy in [
        json!({"type": "none"}),
        json!({}),
        json!("readOnly"),
        json!(["dangerFullAccess"]),
        json!({"type": "workspaceWrite", "writableRoots": ["relative"]}),
        json!({"type": "externalSandbox", "networkAccess": "some"}),
    ] {
        let params = json!({"command": ["touch", file], "sandboxPolicy": policy});
        let error = client.call_fails("command/exec", params).await;
        assert_eq!(error.code, -32600, "{policy}");
        assert!(error.message.starts_with("Invalid request: "), "{error:?}");
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn policy_and_profile_exclude_each_other() {
    let server = outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let params = json!({
        "command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"},
        "permissionProfile": ":danger-full-access",
    });
    let error = client.call_fails("command/exec", params).await;
    let expected = "`permissionProfile` cannot be combined with `sandboxPolicy`";
    assert_eq!(error.parts(), (-32600, expected));
}

#[tokio::test]
async fn profiles_need_the_experimental_api() {
    let server = outpost().start().await;
    let client = server.client().await;
    let params = json!({"command": ["true"], "permissionProfile": ":danger-full-access"});
    let error = client.call_fails("command/exec", params).await;
    let expected = "command/exec.permissionProfile requires experimentalApi capability";
    assert_eq!(error.parts(), (-32600, expected));
    let params = json!({"command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"}});
    assert_eq!(client.call("command/exec", params).await["exitCode"], 0);
}

#[tokio::test]
async fn missing_directory_is_reported_alike_everywhere() {
    let server = outpost().start().await;
    let client = server.client().await;
    fs::write(server.dir().join("file"), "").expect("a file");
    let policies = [
        json!({}),
        json!({"sandboxPolicy": {"type": "workspaceWrite"}}),
        json!({"sandboxPolicy": {"type": "readOnly"}}),
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
    ];
    for cwd in [
        Path::new("/no/such/place"),
        &server.dir().join("missing"),
        &server.dir().join("file"),
    ] {
        let mut errors = Vec::new();
        for more in &policies {
            let mut params = more.clone();
            params["command"] = json!(["true"]);
            params["cwd"] = json!(cwd);
            errors.push(client.call_fails("command/exec", params).await);
        }
        let (code, message) = errors[3].parts();
        let start = format!("failed to spawn command: cannot enter directory {cwd:?}: ");
        assert!(code == -32603 && message.starts_with(&start), "{message}");
        for error in &errors {
            assert_eq!(error.parts(), (code, message), "{cwd:?}");
        }
    }
}

#[tokio::test]
async fn command_runs_in_proc_and_sys() {
    let server = outpost().start().await;
    let client = server.client().await;
    for cwd in ["/proc", "/sys"] {
        let nothing = json!({});
        assert_eq!(sh(&client, Path::new(cwd), "exit 7", &nothing).await, 7);
        let tries = sh(&client, Path::new(cwd), "mkdir .git", &nothing).await;
        assert_ne!(tries, 0, "{cwd}");
    }
}
