//! Tests that a principal with a sandbox starts nothing and reaches no file less sandboxed.

use outpost_testkit::{Client, Server, Start, deadline::poll_until, sh, unbase64};
use serde_json::{Value, json};

use super::support::{Directories, app_client, entry, managed, pattern, special};

/// A principal with a sandbox, and one without.
pub(super) struct Floor {
    pub(super) directories: Directories,
    _server: Server,
    pub(super) sandboxed: Client,
    pub(super) free: Client,
}

impl Floor {
    pub(super) async fn new() -> Self {
        Self::with_network("restricted").await
    }

    pub(super) async fn with_network(network: &str) -> Self {
        let directories = Directories::new();
        let (ws, secret) = (directories.text("ws"), directories.text("secret"));
        let config = format!(
            "sandbox.default_profile = \":danger-full-access\"\n\
             [principals.ci]\nsandbox = \"strict\"\nroots = [\"{ws}\"]\n\
             [sandbox.profiles.strict]\nnetwork = \"{network}\"\n[sandbox.profiles.strict.files]\n\
             \":root\" = \"read\"\n\":project_roots\" = \"write\"\n\"{secret}\" = \"deny\"\n\
             \"**/*.pem\" = \"deny\"\n\
             [sandbox.profiles.wide.files]\n\":root\" = \"write\"\n"
        );
        let (ci, free) = (
            directories.token("ci").await,
            directories.token("free").await,
        );
        let server = directories.server(&config).env("CODEX_HOME", &secret);
        let server = server.start().await;
        Floor {
            sandboxed: app_client(&server, &ci).await,
            free: app_client(&server, &free).await,
            directories,
            _server: server,
        }
    }

    /// The entries of the principal's own sandbox.
    pub(super) fn own_entries(&self) -> Vec<Value> {
        vec![
            special("root", "read"),
            special("project_roots", "write"),
            entry(&self.directories.path("secret"), "deny"),
            pattern("**/*.pem"),
        ]
    }

    /// The principal's own sandbox with more entries.
    pub(super) fn with_entries(&self, more: &[Value]) -> Value {
        let ws = self.directories.path("ws");
        managed(&[&self.own_entries(), more].concat(), "restricted", &[&ws])
    }

    fn start(&self, sandbox: &Value) -> Start {
        let start = sh("p", "true").cwd(&self.directories.path("ws"));
        start.with("sandbox", sandbox.clone())
    }

    /// Checks that a request is refused, and that its refusal depends on the principal.
    pub(super) async fn refused(&self, method: &str, params: Value) {
        let error = self.sandboxed.call_fails(method, params.clone()).await;
        let (code, message) = error.parts();
        assert_eq!(code, -32011, "{method} {params}: {message}");
        assert!(message.starts_with("not permitted: "), "{message}");
        if let Err(error) = self.free.try_call(method, params.clone()).await {
            assert_ne!(error.parts().0, -32011, "{method} {params}");
        }
    }

    async fn start_is_refused(&self, start: Start) {
        let error = self.sandboxed.start_fails(start.clone()).await;
        let (code, message) = error.parts();
        assert_eq!(code, -32011, "{start:?}: {message}");
        assert!(message.starts_with("not permitted: "), "{message}");
        // Each with an id of its own, because a closed process keeps it.
        let id = format!("p{}", self.free.fresh_id());
        let log = self.free.run(start.with("processId", id)).await;
        assert_eq!(log.code(), 0);
    }
}

#[tokio::test]
async fn shell_snapshot_is_captured_in_the_sandbox_of_the_principal() {
    let floor = Floor::new().await;
    let ws = floor.directories.path("ws");
    let outside = floor.directories.text("outside/new");
    let profile = format!("echo run >>~/runs; (: >{outside}) 2>/dev/null; export STATE=captured");
    std::fs::write(ws.join(".bash_profile"), profile).expect("a profile");
    let start = |id: &str| {
        Start::new(id, &["/bin/bash", "-lc", "echo $STATE"])
            .cwd(&ws)
            .env(&[("HOME", ws.to_str().expect("text"))])
            .with(
                "shellSnapshot",
                json!({"scopeId": "s", "shell": {"name": "bash", "path": "/bin/bash"}}),
            )
    };
    for id in ["first", "second"] {
        let log = floor.sandboxed.run(start(id)).await;
        assert_eq!((log.text(), log.code()), ("captured\n".to_owned(), 0));
    }
    let runs = std::fs::read_to_string(ws.join("runs")).expect("it ran");
    assert_eq!(runs, "run\n");
    assert!(!std::path::Path::new(&outside).exists());
    assert_eq!(floor.free.run(start("free")).await.text(), "captured\n");
    assert!(std::path::Path::new(&outside).exists());
}

/// Tries to write outside, to read what is denied, and to use the network; then writes inside.
fn probe(directories: &Directories) -> String {
    let path = |name| directories.text(name);
    format!(
        "touch {0}/by-exec; cat {1}/config.toml {2}/key.pem {3} {4}; touch {2}/.git/x; \
         echo x >> {3}; ls -l /proc/net/route | head -c0; \
         test $(grep -c : /proc/net/dev) = 1 && echo offline; echo new > {2}/by-exec; echo done",
        path("outside"),
        path("secret"),
        path("ws"),
        path("tokens.toml"),
        path("outpost.toml"),
    )
}

#[track_caller]
fn check_probe(directories: &Directories, stdout: &str) {
    assert!(stdout.ends_with("offline\ndone\n"), "{stdout}");
    for secret in ["command", "pem\n", "sha256"] {
        assert!(!stdout.contains(secret), "{secret}: {stdout}");
    }
    assert!(!directories.path("outside/by-exec").exists());
    assert!(!directories.path("ws/.git").exists());
    let written = std::fs::read_to_string(directories.path("ws/by-exec"));
    assert_eq!(written.expect("a file"), "new\n");
}

#[tokio::test]
async fn start_without_a_sandbox_gets_that_of_the_principal() {
    let floor = Floor::new().await;
    let start = sh("p", &probe(&floor.directories)).cwd(&floor.directories.path("ws"));
    let started = floor.sandboxed.start(start).await;
    assert_eq!(started["sandboxType"], "linuxSeccomp");
    let log = floor.sandboxed.closed("p").await;
    check_probe(&floor.directories, &log.stdout());
}

#[tokio::test]
async fn other_dialects_get_the_sandbox_of_the_principal() {
    let floor = Floor::new().await;
    let (client, ws) = (&floor.sandboxed, floor.directories.text("ws"));
    let script = probe(&floor.directories);
    let command = json!(["/bin/sh", "-c", script]);
    let more = json!({"command": command, "cwd": ws});
    let result = client.call("command/exec", more.clone()).await;
    check_probe(&floor.directories, result["stdout"].as_str().expect("text"));
    std::fs::remove_file(floor.directories.path("ws/by-exec")).expect("a file");

    let mut spawn = more;
    spawn["processHandle"] = json!("h");
    client.call("process/spawn", spawn).await;
    let exited = client
        .until("the exit", |received| {
            let found = |message: &Value| {
                message["method"] == "process/exited" && message["params"]["processHandle"] == "h"
            };
            let message = received.messages.iter().find(|message| found(message))?;
            Some(message["params"].clone())
        })
        .await;
    check_probe(&floor.directories, exited["stdout"].as_str().expect("text"));
    std::fs::remove_file(floor.directories.path("ws/by-exec")).expect("a file");

    let v0 = json!({"processId": "v", "argv": command, "cwd": ws, "env": {}, "tty": false});
    client.call("command/exec", v0).await;
    let ended = || {
        let received = client.received();
        let exited = |message: &&std::sync::Arc<Value>| message["method"] == "command/exec/exited";
        received.iter().find(exited)?;
        let chunks = received
            .iter()
            .filter(|message| message["method"] == "command/exec/outputDelta")
            .filter(|message| message["params"]["stream"] == "stdout")
            .flat_map(|message| unbase64(&message["params"]["chunk"]));
        Some(String::from_utf8_lossy(&chunks.collect::<Vec<_>>()).into_owned())
    };
    check_probe(&floor.directories, &poll_until("the exit", ended).await);
}

#[tokio::test]
async fn start_that_asks_for_more_is_refused() {
    let floor = Floor::new().await;
    let path = |name| floor.directories.path(name);
    let (ws, outside) = (path("ws"), path("outside"));
    let own = floor.own_entries();
    let sandboxes = [
        json!({"permissions": {"type": "disabled"}}),
        json!({"permissions": {"type": "external"}}),
        json!({"permissions": {
            "type": "managed", "file_system": {"type": "unrestricted"}, "network": "restricted",
        }}),
        managed(&own, "enabled", &[&ws]),
        floor.with_entries(&[special("root", "write")]),
        floor.with_entries(&[special("slash_tmp", "write")]),
        floor.with_entries(&[entry(&outside, "write")]),
        floor.with_entries(&[entry(&outside.join("file"), "write")]),
        floor.with_entries(&[entry(&ws.join(".git"), "write")]),
        // Without the file that is denied, and without the pattern.
        managed(&own[..2], "restricted", &[&ws]),
        managed(&own[..3], "restricted", &[&ws]),
        managed(
            &[special("root", "read"), own[3].clone()],
            "restricted",
            &[&ws],
        ),
        managed(&own, "restricted", &[&outside]),
        managed(&own, "restricted", &[&ws, &path("")]),
    ];
    for sandbox in &sandboxes {
        floor.start_is_refused(floor.start(sandbox)).await;
    }
    let link = managed(&own, "restricted", &[&ws.join("link")]);
    let error = floor.sandboxed.start_fails(floor.start(&link)).await;
    assert_eq!(error.parts().0, -32011);
    for cwd in ["outside", "", "ws/link", "ws/sub/../../outside"] {
        let start = sh("p", "true").cwd(&path(cwd));
        floor.start_is_refused(start).await;
    }
    // A proxy connects from outside of the sandbox.
    let proxy = json!({"proxy": {
        "enabled": true, "enableSocks5": true, "enableSocks5Udp": false, "allowUpstreamProxy": false,
        "dangerouslyAllowAllUnixSockets": false, "mode": "full", "domains": {"a.test": "allow"},
        "allowLocalBinding": false,
    }});
    for start in [
        sh("p", "true").cwd(&ws),
        floor.start(&floor.with_entries(&[])),
    ] {
        floor
            .start_is_refused(start.with("networkProxy", proxy.clone()))
            .await;
    }
    // The client chooses the environment, and so where the temporary directory is.
    let tmpdir = floor.with_entries(&[special("tmpdir", "write")]);
    let start = floor.start(&tmpdir);
    let outside = floor.directories.text("outside");
    floor
        .start_is_refused(start.env(&[("TMPDIR", &outside), ("PATH", "/usr/bin:/bin")]))
        .await;
    assert_eq!(floor.sandboxed.listed("p").await, None);
}

#[tokio::test]
async fn start_that_asks_for_less_is_served() {
    let floor = Floor::new().await;
    let own = floor.own_entries();
    let ws = floor.directories.path("ws");
    let narrower = [
        managed(&own, "restricted", &[&ws]),
        managed(&own, "restricted", &[&ws.join("sub")]),
        managed(&own, "restricted", &[]),
        managed(
            &[
                special("minimal", "read"),
                entry(&ws.join("sub"), "write"),
                entry(&ws, "read"),
                pattern("**/*.pem"),
            ],
            "restricted",
            &[&ws],
        ),
        floor.with_entries(&[entry(&ws.join("sub"), "read")]),
    ];
    for (number, sandbox) in narrower.iter().enumerate() {
        let start = floor.start(sandbox);
        let start = start.with("processId", number.to_string());
        let log = floor.sandboxed.run(start).await;
        assert_eq!(log.code(), 0, "{sandbox}");
    }
    // Writing is what differs.
    let start = sh("w", "touch sub/x && touch x").cwd(&ws);
    let start = start.with("sandbox", managed(&own, "restricted", &[&ws.join("sub")]));
    assert_ne!(floor.sandboxed.run(start).await.code(), 0);
    assert!(ws.join("sub/x").exists() && !ws.join("x").exists());
}

#[tokio::test]
async fn command_that_asks_for_more_is_refused() {
    let floor = Floor::new().await;
    let (ws, outside) = (
        floor.directories.text("ws"),
        floor.directories.text("outside"),
    );
    let write = |more: Value| {
        let mut policy = json!({
            "type": "workspaceWrite", "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
        });
        let members = more.as_object().expect("an object");
        policy
            .as_object_mut()
            .expect("an object")
            .extend(members.clone());
        json!({"sandboxPolicy": policy})
    };
    for more in [
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox"}}),
        json!({"sandboxPolicy": {"type": "readOnly"}}),
        json!({"sandboxPolicy": {"type": "readOnly", "networkAccess": true}}),
        json!({"permissionProfile": ":danger-full-access"}),
        json!({"permissionProfile": ":workspace"}),
        json!({"permissionProfile": ":read-only"}),
        json!({"permissionProfile": "wide"}),
        write(json!({})),
        write(json!({"networkAccess": true})),
        write(json!({"writableRoots": [outside]})),
        write(json!({"excludeSlashTmp": false})),
    ] {
        let mut params = json!({"command": ["true"], "cwd": ws});
        let members = more.as_object().expect("an object");
        params
            .as_object_mut()
            .expect("an object")
            .extend(members.clone());
        floor.refused("command/exec", params).await;
    }
    for cwd in [outside, format!("{ws}/../outside"), "..".to_owned()] {
        let params = json!({"command": ["true"], "cwd": cwd});
        floor.refused("command/exec", params).await;
        let params = json!({"command": ["true"], "cwd": "/", "processHandle": "h"});
        floor.refused("process/spawn", params).await;
    }
    let own = json!({"command": ["true"], "cwd": ws, "permissionProfile": "strict"});
    assert_eq!(
        floor.sandboxed.call("command/exec", own).await["exitCode"],
        0
    );
}
