//! Tests symbolic links that one confined process plants for the next.

use std::path::Path;

use outpost_testkit::sh;
use serde_json::Value;

use super::{SandboxDirs, managed_sandbox, special};
use crate::ready;

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
    let confined = |id: &str, script: &str, at: &Path, tmpdir: &Path| {
        sh(id, script)
            .cwd(at)
            .env(&[("TMPDIR", tmpdir.to_str().expect("text"))])
            .with("sandbox", writing(at))
    };
    let plant = "mv packages/app packages/moved && ln -s ../../home packages/app";
    let log = client
        .run(confined("plant", plant, &workspace, &workspace))
        .await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    for (at, tmpdir) in [
        (&package, &workspace),
        (&package, &package),
        (&home, &package),
    ] {
        let error = client.start_fails(confined("p", attack, at, tmpdir)).await;
        assert_eq!(error.parts().0, -32602);
        let message = error.parts().1;
        assert!(message.contains("is a symbolic link"), "{message}");
    }
    assert!(!home.join(".ssh/authorized_keys").exists());
    // The target can be named.
    let log = client.run(confined("p", attack, &home, &home)).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
}
