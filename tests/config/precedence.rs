//! Tests the precedence of configuration sources by the server's behaviour.

use outpost_testkit::{EventLog, Start};
use serde_json::json;

use super::{User, text};
use crate::outpost;

/// Returns the longest lease this server grants, which it reports when asked for more.
async fn longest_lease(launch: outpost_testkit::ServerCommand) -> String {
    let server = launch.start().await;
    let client = server.connect().await;
    let params = json!({"clientName": "t", "detachedTtlMs": 9_007_199_254_740_991_u64});
    client.call_fails("initialize", params).await.message
}

#[tokio::test]
async fn command_line_precedes_environment_precedes_file() {
    let user = User::with_file("max_session_ttl = \"3s\"");
    let file = longest_lease(user.outpost()).await;
    assert!(file.ends_with(" 3000"), "{file}");
    let variable = longest_lease(user.outpost().env("OUTPOST_MAX_SESSION_TTL", "2s")).await;
    assert!(variable.ends_with(" 2000"), "{variable}");
    let launch = user.outpost().env("OUTPOST_MAX_SESSION_TTL", "2s");
    let flag = longest_lease(launch.args(&["--max-session-ttl", "1s"])).await;
    assert!(flag.ends_with(" 1000"), "{flag}");
    let built_in = longest_lease(outpost()).await;
    assert!(built_in.ends_with(" 86400000"), "{built_in}");
}

#[tokio::test]
async fn named_file_replaces_the_users_file() {
    let user = User::with_file("max_session_ttl = \"3s\"\nsession_ttl = \"3s\"");
    let other = User::with_file("max_session_ttl = \"4s\"");
    let named = longest_lease(user.outpost().args(&["--config", text(&other.file())])).await;
    assert!(named.ends_with(" 4000"), "{named}");
    let named = longest_lease(user.outpost().env("OUTPOST_CONFIG", text(&other.file()))).await;
    assert!(named.ends_with(" 4000"), "{named}");
    let output = user
        .outpost()
        .run(&["config", "show", "--config", text(&other.file())])
        .await;
    let session_ttl = output
        .stdout
        .lines()
        .find(|line| line.starts_with("session_ttl"));
    assert!(
        session_ttl.is_some_and(|line| line.ends_with("= \"30s\"")),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn server_listens_on_the_address_in_its_file() {
    let user = User::with_file("listen = [\"stdio://\"]\n[log]\nlevel = \"off\"");
    let output = user.outpost().run(&["serve"]).await;
    // A server on stdio ends with its input.
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn largest_numbers_are_accepted() {
    let times = "500000000000years";
    let most = i64::MAX;
    let user = User::with_file(&format!(
        "session_ttl = \"{times}\"\nmax_session_ttl = \"unlimited\"\nclosed_retention = \"{times}\"\n\
         retain_bytes = {most}\nwindow_bytes = {most}\nmax_sessions = {most}\n\
         max_processes = {most}\nmax_connections = {most}\nconcurrent_requests = {most}"
    ));
    let server = user.outpost().start().await;
    let client = server.connect().await;
    let session = client.handshake().await["sessionId"].clone();
    client.run(Start::new("p", &["echo", "out"])).await;
    client.cut().await;
    // Detaching and resuming both compute a deadline from these durations.
    let client = server.connect().await;
    client.take_over(&session).await;
    assert_eq!(
        EventLog::page_bytes(&client.read("p", json!({})).await),
        b"out\n"
    );
}
