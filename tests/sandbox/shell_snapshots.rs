//! Tests `shellSnapshot` of sandboxed commands.

use outpost_testkit::{Start, file_uri};
use serde_json::json;

use super::SandboxDirs;
use crate::{outpost, ready, ready_with};

impl SandboxDirs {
    /// Writes a profile that counts its runs in the workspace, and tries to write beside it.
    fn write_profile(&self) {
        let script = format!(
            "echo run >>~/runs; (echo escaped >{}) 2>/dev/null; \
             export STATE=captured PID=$$; greet() {{ echo \"greet $1\"; }}",
            self.outside("escaped").display()
        );
        std::fs::write(self.workspace().join(".bash_profile"), script).expect("a profile");
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.workspace().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    /// A command of bash with a snapshot, which starts in the workspace.
    fn login(&self, id: &str, command: &str) -> Start {
        let home = self.workspace();
        Start::new(id, &["/bin/bash", "-lc", command])
            .env(&[("HOME", home.to_str().expect("text"))])
            .cwd(&home)
            .with(
                "shellSnapshot",
                json!({"scopeId": "s", "shell": {"name": "bash", "path": "/bin/bash"}}),
            )
    }
}

#[tokio::test]
async fn capture_and_command_are_sandboxed() {
    for level in ["namespaces", "landlock"] {
        let (_server, client) = ready_with(&["--sandbox-level", level]).await;
        let dirs = SandboxDirs::new();
        dirs.write_profile();
        let command = "greet you; echo $STATE; ls -1 /proc/self/fd; (echo x >../escaped) 2>/dev/null; \
             (: <&17) 2>/dev/null || echo closed";
        for (id, tty) in [("first", false), ("pty", true), ("later", false)] {
            let start = dirs.login(id, command).with("tty", tty);
            let start = start.with("sandbox", dirs.sandbox(&[]));
            let log = client.run(start).await;
            let text = log.text().replace("\r\n", "\n");
            assert_eq!(text, "greet you\ncaptured\n0\n1\n2\n3\nclosed\n", "{level}");
        }
        assert_eq!(dirs.runs(), 1);
        assert!(!dirs.outside("escaped").exists());
    }
}

#[tokio::test]
async fn sandboxed_and_unsandboxed_commands_share_no_snapshot() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    dirs.write_profile();
    let sandboxed = |id| {
        dirs.login(id, "echo $PID")
            .with("sandbox", dirs.sandbox(&[]))
    };
    let inside = client.run(sandboxed("first")).await.text();
    let outside = client.run(dirs.login("free", "echo $PID")).await.text();
    assert_ne!(inside, outside);
    assert_eq!(client.run(sandboxed("later")).await.text(), inside);
    assert_eq!(dirs.runs(), 2);
    // The second one was not sandboxed.
    assert!(dirs.outside("escaped").exists());
}

#[tokio::test]
async fn profile_that_the_policy_hides_is_not_read() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    dirs.write_profile();
    let profile = dirs.workspace().join(".bash_profile");
    let hidden = json!({"path": {"type": "path", "path": file_uri(&profile)}, "access": "deny"});
    let start = dirs.login("p", "echo \"[$STATE]\"");
    let start = start.with("sandbox", dirs.sandbox(&[hidden]));
    assert_eq!(client.run(start).await.text(), "[]\n");
    assert_eq!(dirs.runs(), 0);
}

#[tokio::test]
async fn snapshot_survives_a_reconnect() {
    let server = outpost().start().await;
    let dirs = SandboxDirs::new();
    dirs.write_profile();
    let sandboxed = |id| {
        let start = dirs.login(id, "echo $STATE");
        start.with("sandbox", dirs.sandbox(&[]))
    };
    let client = server.connect().await;
    let session = client.handshake().await["sessionId"].clone();
    assert_eq!(client.run(sandboxed("first")).await.text(), "captured\n");
    client.cut().await;
    let client = server.connect().await;
    client.take_over(&session).await;
    assert_eq!(client.run(sandboxed("later")).await.text(), "captured\n");
    assert_eq!(dirs.runs(), 1);
}
