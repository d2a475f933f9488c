//! Tests who may connect on loopback without a token.

use std::process::Command;

use outpost_testkit::{
    Start,
    http_client::{UPGRADE, get},
};

use serde_json::json;

use crate::{outpost, ready};

/// A shell command that upgrades to a WebSocket and prints the response.
fn upgrade_command(address: &str) -> String {
    let (host, port) = address.rsplit_once(':').expect("a port");
    let lines = UPGRADE.join("\\r\\n");
    format!(
        "exec 3<>/dev/tcp/{host}/{port}; \
         printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n{lines}\\r\\n\\r\\n' >&3; \
         head -c 12 <&3"
    )
}

#[tokio::test]
async fn own_user_needs_no_token() {
    let (server, _client) = ready().await;
    assert_eq!(get(server.address(), "/", UPGRADE).await.status, 101);
}

/// Runs as another user, which only root can.
#[tokio::test]
async fn other_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let other = |address: &str| {
        let output = Command::new("setpriv")
            .args(["--reuid=65533", "--regid=65533", "--clear-groups"])
            .args(["bash", "-c", &upgrade_command(address)])
            .output()
            .expect("setpriv runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let server = outpost().start().await;
    assert_eq!(other(server.address()), "HTTP/1.1 403");
    let server = outpost().args(&["--allow-local-users"]).start().await;
    assert!(
        server.stderr().contains("every user of this machine"),
        "{}",
        server.stderr()
    );
    assert_eq!(other(server.address()), "HTTP/1.1 101");
}

/// Only peer credentials prove the user, and a process of the server may be behind a socket.
#[tokio::test]
async fn local_client_has_its_entry_without_admin() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("outpost.toml");
    let uid = rustix::process::geteuid().as_raw();
    let entry = format!("[principals.\"uid:{uid}\"]\nscopes = [\"admin\", \"files:write\"]\n");
    std::fs::write(&config, entry).expect("a file");
    let socket = dir.path().join("socket");
    let unix = format!("unix://{}", socket.display());
    let server = outpost()
        .args(&["--config", config.to_str().expect("a path")])
        .args(&["--listen", "ws://127.0.0.1:0", "--listen", &unix])
        .start()
        .await;
    let list = json!({});
    let client = server.client().await;
    let error = client.call_fails("session/list", list.clone()).await;
    assert_eq!(error.parts(), (-32011, "not permitted: admin is required"));
    let error = client.start_fails(Start::new("p", &["true"])).await;
    assert_eq!(error.parts(), (-32011, "not permitted: exec is required"));
    let owner = server.connect_to(&unix).await;
    owner.handshake().await;
    owner.call("session/list", list).await;
}

/// Where process trees are cgroups, the kernel tells which sockets are those of its processes.
#[tokio::test]
async fn process_of_the_server_is_refused_where_cgroups_tell() {
    let (server, client) = ready().await;
    let info = client.call("environment/info", json!({})).await;
    let expected = match info["processTrees"].as_str() {
        Some("cgroup") => "HTTP/1.1 403",
        _ => "HTTP/1.1 101",
    };
    let command = upgrade_command(server.address());
    let upgrade = |id| Start::new(id, &["bash", "-c", &command]);
    assert_eq!(client.run(upgrade("p")).await.stdout(), expected);
    // Processes with limits have other cgroups.
    let enforceable = info["limits"]["enforceable"].as_array();
    if enforceable.is_some_and(|all| all.contains(&json!("processes"))) {
        let limited = upgrade("limited").with("limits", json!({"processes": 50}));
        assert_eq!(client.run(limited).await.stdout(), expected);
    }
}

/// Other users are principals by their user ids. Needs another user, which only root can be.
#[tokio::test]
async fn other_users_are_principals() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("outpost.toml");
    let text = "[principals.default]\nscopes = [\"files:read\"]\n[principals.\"uid:65533\"]\nscopes = [\"exec\"]\n";
    std::fs::write(&config, text).expect("a file");
    let config = config.to_str().expect("a path");
    let server = outpost()
        .args(&["--allow-local-users", "--config", config])
        .start()
        .await;
    let owner = server.connect().await;
    let session = owner.handshake().await["sessionId"].clone();
    let params =
        serde_json::json!({"clientName": "x", "resumeSessionId": session, "takeover": true});
    let messages = [
        serde_json::json!({"id": 1, "method": "initialize", "params": params}),
        serde_json::json!({"id": 2, "method": "initialize", "params": {"clientName": "x"}}),
        serde_json::json!({"method": "initialized"}),
        serde_json::json!({"id": 3, "method": "process/start", "params": {
            "processId": "p", "argv": ["id", "-u"], "cwd": "file:///", "env": {"PATH": "/usr/bin:/bin"},
        }}),
        serde_json::json!({"id": 4, "method": "session/list"}),
    ];
    for (uid, expected) in [
        ("65533", "\"processId\":\"p\""),
        ("65532", "exec is required"),
    ] {
        let answers = converse_as(uid, server.address(), &messages);
        assert!(answers[0].contains("unknown session id"), "{answers:?}");
        assert!(answers[2].contains(expected), "{answers:?}");
        let own = session.as_str().expect("an id");
        assert!(!answers[3].contains(own), "{answers:?}");
    }
    owner.check_alive().await;
}

/// Sends messages in WebSocket frames as another user, and returns the answers to the requests.
fn converse_as(uid: &str, address: &str, messages: &[serde_json::Value]) -> Vec<String> {
    let script = r#"
import encodings.idna, json, os, socket, struct, sys
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
host, port = sys.argv[2].rsplit(":", 1)
stream = socket.create_connection((host, int(port))).makefile("rwb")
stream.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
stream.flush()
while stream.readline() != b"\r\n": pass
for text in sys.argv[3:]:
    data = text.encode()
    stream.write(struct.pack("!BBHI", 0x81, 0x80 | 126, len(data), 0) + data)
    stream.flush()
    wanted = json.loads(text).get("id")
    while wanted is not None:
        kind, size = stream.read(2)
        if size == 126: size, = struct.unpack("!H", stream.read(2))
        answer = stream.read(size)
        if kind == 0x81 and json.loads(answer).get("id") == wanted:
            print(answer.decode())
            break
"#;
    let output = Command::new("python3")
        .args(["-c", script, uid, address])
        .args(messages.iter().map(ToString::to_string))
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}
