//! Tests symbolic links that one sandboxed process plants for the next.

use std::path::Path;

use outpost_testkit::{Server, sh};
use serde_json::Value;

use super::{SandboxDirs, managed_sandbox, special};
use crate::{outpost, ready};

/// Returns a policy that allows writing its workspace and `$TMPDIR`.
fn writing(workspace: &Path) -> Value {
    let entries = [
        special("root", "read"),
        special("project_roots", "write"),
        special("tmpdir", "write"),
    ];
    managed_sandbox(workspace, &entries)
}

#[tokio::test]
async fn planted_link_grants_nothing() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let (workspace, home) = (dirs.workspace(), dirs.outside("home"));
    let package = workspace.join("packages/app");
    std::fs::create_dir_all(&package).expect("directories");
    std::fs::create_dir_all(home.join(".ssh")).expect("directories");
    let attack = "echo key > .ssh/authorized_keys; echo key > $TMPDIR/.ssh/authorized_keys";
    let sandboxed = |id: &str, script: &str, at: &Path, tmpdir: &Path| {
        sh(id, script)
            .cwd(at)
            .env(&[("TMPDIR", tmpdir.to_str().expect("text"))])
            .with("sandbox", writing(at))
    };
    let plant = "mv packages/app packages/moved && ln -s ../../home packages/app";
    let log = client
        .run(sandboxed("plant", plant, &workspace, &workspace))
        .await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    for (at, tmpdir) in [
        (&package, &workspace),
        (&package, &package),
        (&home, &package),
    ] {
        let error = client.start_fails(sandboxed("p", attack, at, tmpdir)).await;
        assert_eq!(error.parts().0, -32602);
        let message = error.parts().1;
        assert!(message.contains("is a symbolic link"), "{message}");
    }
    assert!(!home.join(".ssh/authorized_keys").exists());
    // The target can be named.
    let log = client.run(sandboxed("p", attack, &home, &home)).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
}

/// A server that stores what it grants in `state`.
async fn with_state(state: &Path) -> Server {
    let state = state.to_str().expect("text");
    outpost().env("XDG_STATE_HOME", state).start().await
}

#[tokio::test]
async fn planted_link_grants_nothing_after_a_restart() {
    let dirs = SandboxDirs::new();
    let (workspace, home, state) = (
        dirs.workspace(),
        dirs.outside("home"),
        dirs.outside("state"),
    );
    for directory in [&workspace.join("app"), &home, &state] {
        std::fs::create_dir_all(directory).expect("directories");
    }
    let server = with_state(&state).await;
    let client = server.client().await;
    let plant = "rmdir app && ln -s ../home app";
    let log = client.run(dirs.script("plant", plant)).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    drop(server);
    let server = with_state(&state).await;
    let client = server.client().await;
    let app = workspace.join("app");
    let sandboxed = |id: &str, at: &Path| {
        let start = sh(id, "echo key > key").cwd(at);
        start.with("sandbox", writing(at))
    };
    let error = client.start_fails(sandboxed("p", &app)).await;
    let (code, message) = error.parts();
    assert_eq!(code, -32602);
    assert!(
        message.contains("earlier sandboxed process could write"),
        "{message}"
    );
    assert!(!home.join("key").exists());
    let record = state.join("outpost/sandbox/granted");
    std::fs::write(&record, "x").expect("a file");
    let error = client.start_fails(sandboxed("p", &workspace)).await;
    let message = error.parts().1;
    assert!(message.contains("is damaged"), "{message}");
    assert!(message.contains("remove the file"), "{message}");
    // The remedy. This server still knows what it has read.
    std::fs::remove_file(&record).expect("remove");
    let log = client.run(sandboxed("q", &workspace)).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    client.start_fails(sandboxed("p", &app)).await;
}
