//! Tests the configuration of docs/deploy.md that keeps the files of principals apart.

use outpost_testkit::{Client, base64, file_uri, sh, unbase64};
use serde_json::json;

use super::support::Directories;

/// The profile, as the documentation has it.
fn profile() -> String {
    let documentation = include_str!("../../docs/deploy.md");
    let from = documentation.find("[sandbox.profiles.team.files]");
    let profile = &documentation[from.expect("a profile")..];
    profile[..profile.find("```").expect("the end of the block")].to_owned()
}

/// Runs a script in a directory and returns what it has printed.
async fn stdout(
    client: &Client,
    id: &str,
    cwd: &str,
    directories: &Directories,
    script: &str,
) -> String {
    let start = sh(id, script).cwd(&directories.path(cwd));
    client.run(start).await.stdout()
}

#[tokio::test]
async fn documented_profile_keeps_the_files_of_principals_apart() {
    let directories = Directories::new();
    let mut config = profile();
    for name in ["alice", "bob"] {
        let root = directories.path(name);
        std::fs::create_dir(&root).expect("a directory");
        config.push_str(&format!(
            "[principals.{name}]\nsandbox = \"team\"\nroots = [{:?}]\n",
            root.to_str().expect("text")
        ));
    }
    let (alice, bob) = (
        directories.token("alice").await,
        directories.token("bob").await,
    );
    let server = directories.server(&config).start().await;
    let alice = server.client_with_token(&alice).await;
    let bob = server.client_with_token(&bob).await;
    let script = "echo private > own; mkdir tmp; TMPDIR=$PWD/tmp mktemp >/dev/null && cat own";
    let printed = stdout(&alice, "a", "alice", &directories, script).await;
    assert_eq!(printed, "private\n");
    let own = directories.text("alice/own");
    let script = format!(
        "cat {own} 2>&1; ls {} 2>&1; echo >> {own}; touch /tmp/shared && echo shared; echo done",
        directories.text("alice")
    );
    let printed = stdout(&bob, "b", "bob", &directories, &script).await;
    assert!(
        !printed.contains("private") && !printed.contains("shared"),
        "{printed}"
    );
    assert!(printed.ends_with("done\n"), "{printed}");
    let own = file_uri(&directories.path("alice/own"));
    let read = alice.call("fs/readFile", json!({"path": own})).await;
    assert_eq!(unbase64(&read["dataBase64"]), b"private\n");
    for (method, params) in [
        ("fs/readFile", json!({"path": own})),
        (
            "fs/writeFile",
            json!({"path": own, "dataBase64": base64("x")}),
        ),
        (
            "process/start",
            json!({
                "processId": "c", "argv": ["/bin/true"], "cwd": file_uri(&directories.path("alice")),
                "env": {}, "tty": false,
            }),
        ),
    ] {
        let error = bob.call_fails(method, params).await;
        assert_eq!(error.parts().0, -32011, "{method}");
    }
}
