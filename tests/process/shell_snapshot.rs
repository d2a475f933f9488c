//! Tests `shellSnapshot`: commands of a login shell without its profile.

use outpost_testkit::{Client, Start, TestTag, deadline};
use serde_json::{Value, json};

use crate::ready;

fn snapshot(shell: &str) -> Value {
    json!({"scopeId": "thread:remote", "shell": {"name": shell, "path": format!("/bin/{shell}")}})
}

#[tokio::test]
async fn profile_runs_once_per_session() {
    let (server, client) = ready().await;
    let home = server.dir();
    std::fs::write(
        home.join(".bash_profile"),
        "echo run >>~/runs; echo noise; hello() { echo \"hello $1\"; }",
    )
    .expect("a profile");
    let start = |client: &Client, snapshot: Value| {
        let id = format!("p{}", client.fresh_id());
        Start::new(&id, &["/bin/bash", "-lc", "hello you"])
            .env(&[("HOME", home.to_str().expect("text"))])
            .with("shellSnapshot", snapshot)
    };
    for _ in 0..3 {
        let log = client.run(start(&client, snapshot("bash"))).await;
        assert_eq!((log.text().as_str(), log.code()), ("hello you\n", 0));
    }
    let plain = client.run(start(&client, Value::Null)).await;
    assert_eq!(plain.text(), "noise\nhello you\n");
    let other = server.client().await;
    other.run(start(&other, snapshot("bash"))).await;
    let runs = std::fs::read_to_string(home.join("runs")).expect("it ran");
    assert_eq!(runs.lines().count(), 3, "once per session, and once plain");
}

#[tokio::test]
async fn invalid_snapshots_are_32602() {
    let (_server, client) = ready().await;
    let missing = |name: &str| format!("missing field `{name}`");
    let scope = "shell snapshot scope must be non-empty and at most 256 bytes".to_owned();
    let mut empty = snapshot("bash");
    empty["scopeId"] = "".into();
    let mut long = snapshot("bash");
    long["scopeId"] = "x".repeat(257).into();
    for (snapshot, message) in [
        (empty, scope.clone()),
        (long, scope),
        (
            snapshot("fish"),
            "shell snapshots are unsupported for shell `fish`".to_owned(),
        ),
        (
            json!({"shell": {"name": "sh", "path": "/"}}),
            missing("scopeId"),
        ),
        (json!({"scopeId": "s"}), missing("shell")),
        (
            json!({"scopeId": "s", "shell": {"path": "/"}}),
            missing("name"),
        ),
        (
            json!({"scopeId": "s", "shell": {"name": "sh"}}),
            missing("path"),
        ),
    ] {
        let start = Start::new("p", &["/bin/true"]).with("shellSnapshot", snapshot);
        let error = client.start_fails(start).await;
        assert_eq!((error.code, error.message), (-32602, message));
    }
    let missing = Start::new("p", &["/nonexistent/zsh", "-lc", "true"]).with(
        "shellSnapshot",
        json!({"scopeId": "s", "shell": {"name": "zsh", "path": "/nonexistent/zsh"}}),
    );
    assert_eq!(client.start_fails(missing).await.code, -32603);
}

#[tokio::test]
async fn terminate_cancels_a_capture_with_its_tree() {
    let (server, client) = ready().await;
    let home = server.dir();
    std::fs::write(
        home.join(".bash_profile"),
        "sleep 1000 & (setsid sleep 1000 &) ; echo >~/began; wait",
    )
    .expect("a profile");
    let start = Start::new("p", &["/bin/bash", "-lc", "true"])
        .env(&[
            ("HOME", home.to_str().expect("text")),
            (TestTag::VARIABLE, server.tag().as_str()),
        ])
        .with("shellSnapshot", snapshot("bash"));
    let starting = client.request_start(start).await;
    deadline::poll_until("the profile runs", || {
        home.join("began").exists().then_some(())
    })
    .await;
    assert!(client.terminate("p").await);
    let error = client
        .response(starting)
        .await
        .expect_err("it is cancelled");
    assert_eq!(error.message, "process p start was cancelled");
    server.tag().alive(1).await;
}
