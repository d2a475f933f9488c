//! Tests the limits of a principal.

use outpost_testkit::{
    Client, TestUser,
    deadline::expect_soon,
    file_uri,
    http_client::{UPGRADE, get},
    sh,
};
use serde_json::{Value, json};

use super::support::Directories;

const CONFIG: &str = "[principals.ci]\nlimits = { processes = 2, sessions = 2, connections = 3 }\n";

/// Repeats a request until a place is free, which is when everything of the former holder is gone.
async fn until_served(client: &Client, method: &str, params: Value) {
    expect_soon(method, async {
        while client.try_call(method, params.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Starts a process once everything of the former holder of its place is gone.
async fn start_when_served(client: &Client, id: &str) {
    expect_soon("a start", async {
        loop {
            let request = client.request_start(sh(id, "cat").stdin()).await;
            if client.response(request).await.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A principal can always list, read and end its own work.
#[tokio::test]
async fn detached_work_at_the_limit_of_sessions_can_be_listed_and_ended() {
    let directories = Directories::new();
    let ci = directories.token("ci").await;
    let config = "max_session_ttl = \"unlimited\"\n[principals.ci]\nlimits = { sessions = 1 }\n";
    let server = directories.server(config).start().await;
    let url = &server.urls()[0];
    let user = TestUser::new(env!("CARGO_BIN_EXE_outpost"));
    let run = async |args: &[&str]| {
        let args = [&args[..1], &["--on", url], &args[1..]].concat();
        user.command().env("OUTPOST_TOKEN", &ci).run(&args).await
    };
    let start = [
        "run",
        "--detach",
        "--",
        "sh",
        "-c",
        "echo hi; exec sleep 1000",
    ];
    let started = run(&start).await;
    assert_eq!(started.code, Some(0), "{started:?}");
    let id = started.stdout.trim_end();
    let second = run(&start).await;
    let text =
        "1 sessions with processes at once (limits.sessions); end one, such as with outpost kill";
    assert!(
        second.code != Some(0) && second.stderr.contains(text),
        "{second:?}"
    );
    assert!(run(&["ps"]).await.stdout.contains(id));
    assert_eq!(run(&["logs", id]).await.stdout, "hi\n");
    assert_eq!(run(&["kill", id]).await.code, Some(0));
}

#[tokio::test]
async fn principal_has_as_many_connections_sessions_and_processes_as_configured() {
    let directories = Directories::new();
    let (ci, other) = (
        directories.token("ci").await,
        directories.token("other").await,
    );
    let server = directories.server(CONFIG).start().await;
    let first = server.client_with_token(&ci).await;
    first.start(sh("a", "cat").stdin()).await;
    first.start(sh("b", "cat").stdin()).await;
    let error = first.start_fails(sh("c", "true")).await;
    let text = "limit of the principal: 2 processes at once (limits.processes); wait for one, or end one, such as \
                with outpost kill";
    assert_eq!(error.parts(), (-32001, text));
    // A sandboxed file operation is a process too.
    let read = json!({
        "path": file_uri(&directories.path("ws/own")),
        "sandbox": super::support::managed(
            &[super::support::special("root", "read")], "restricted", &[],
        ),
    });
    let error = first.call_fails("fs/readFile", read.clone()).await;
    assert_eq!(error.parts().0, -32001);
    first.terminate_and_wait("a").await;
    until_served(&first, "fs/readFile", read).await;

    let second = server.client_with_token(&ci).await;
    let third = server.client_with_token(&ci).await;
    start_when_served(&second, "a").await;
    let error = third.start_fails(sh("a", "true")).await;
    let text = "limit of the principal: 2 sessions with processes at once (limits.sessions); end one, such as with \
                outpost kill; outpost ps lists them";
    assert_eq!(error.parts(), (-32001, text));
    let header = format!("Authorization: Bearer {ci}");
    let response = get(server.address(), "/", &[UPGRADE, &[&header]].concat()).await;
    assert_eq!(
        (response.status, &*response.body),
        (503, "too many connections\n")
    );
    // A session without processes doesn't count, so that the work of others can be listed and ended.
    let sessions = third.call("session/list", json!({})).await;
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(3));
    second.call("session/close", json!({})).await;
    start_when_served(&third, "a").await;

    let client = server.client_with_token(&other).await;
    for id in ["a", "b", "c"] {
        client.start(sh(id, "cat").stdin()).await;
    }
}

/// Where no controller is delegated to the server, as for most tests, no process starts.
#[tokio::test]
async fn memory_that_cannot_be_limited_refuses_the_start() {
    let directories = Directories::new();
    let ci = directories.token("ci").await;
    let config = "[principals.ci]\nlimits = { memory = \"1GiB\", cpus = 2 }\n";
    let server = directories.server(config).start().await;
    let client = server.client_with_token(&ci).await;
    let more = sh("p", "true").with("limits", json!({"memoryBytes": 2_u64 << 30}));
    let error = client.start_fails(more).await;
    let text = "not permitted: limits.memoryBytes may be 1073741824 at most";
    assert_eq!(error.parts(), (-32011, text));
    let info = client.call("environment/info", json!({})).await;
    let enforceable = info["limits"]["enforceable"].as_array().expect("names");
    if ["memoryBytes", "cpus"]
        .iter()
        .all(|name| enforceable.contains(&json!(name)))
    {
        assert_eq!(client.run(sh("p", "true")).await.code(), 0);
        return;
    }
    let error = client.start_fails(sh("p", "true")).await;
    let (code, message) = error.parts();
    assert_eq!(code, -32602);
    assert!(
        message.starts_with("limit cannot be enforced on this executor: "),
        "{message}"
    );
}
