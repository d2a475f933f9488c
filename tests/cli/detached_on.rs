//! Tests `outpost run --detach` on a server named with `--on`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use outpost_testkit::{Server, TestUser, Transport, deadline};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{command, finish, new_user, text};
use crate::outpost;

async fn server_on(transport: Transport) -> (Server, String) {
    let args = ["--max-session-ttl", "unlimited"];
    let server = outpost().on(transport).args(&args).start().await;
    let url = server.urls()[0].clone();
    (server, url)
}

/// Runs a command that must succeed and returns its stdout.
async fn output(args: &[&str]) -> String {
    let output = outpost().run(args).await;
    assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
    output.stdout
}

#[tokio::test]
async fn unix_socket_server_works_like_the_per_user_server() {
    let (_server, url) = server_on(Transport::Unix).await;
    let script = "echo hi; exec sleep 1000";
    let id = output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script]).await;
    let id = id.trim_end();
    assert_eq!(id.len(), 8, "{id}");
    let ps = output(&["ps", "--on", &url]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    output(&["kill", "--on", &url, &id[..4]]).await;
    assert_eq!(output(&["logs", "--on", &url, "-f", id]).await, "hi\n");
}

/// Returns the session id that is stored for a process.
fn stored_session(user: &TestUser, process: &str) -> String {
    let stored = fs::read_to_string(user.key_file(process)).expect("a stored key");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    stored["session"].as_str().expect("a session id").to_owned()
}

#[tokio::test]
async fn tcp_session_id_is_in_a_private_file_and_not_in_the_id() {
    let (server, url) = server_on(Transport::WebSocket).await;
    let user = new_user();
    let script = "echo hi; exec sleep 1000";
    let run = ["run", "--detach", "--on", &url, "--", "sh", "-c", script];
    let id = user.output(&run).await;
    let id = id.trim_end();
    assert_eq!(id.len(), 8, "{id}");
    let session = stored_session(&user, id);
    let file = fs::metadata(user.key_file(id)).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
    let folder = user.key_file("").metadata().unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);

    let kill = user.output(&["kill", "--on", &url, &id[..4]]).await;
    assert!(kill.starts_with(&format!("{id} has ended")), "{kill}");
    assert_eq!(user.output(&["logs", "--on", &url, "-f", id]).await, "hi\n");
    // The form that contains the session id works without the file, as before.
    let full = format!("{session}/{id}");
    assert_eq!(output(&["logs", "--on", &url, "-f", &full]).await, "hi\n");

    let forgotten = user.run(&["logs", id]).await;
    assert_eq!(forgotten.code, Some(1));
    assert!(
        forgotten.stderr.contains(&format!("use --on {url}")),
        "{forgotten:?}"
    );
    let other = new_user();
    let stranger = other.run(&["logs", "--on", &url, id]).await;
    assert_eq!(stranger.code, Some(1));
    assert!(
        stranger.stderr.contains("has no key of one with this id"),
        "{stranger:?}"
    );
    let name = format!("{session}/nope");
    let unknown = outpost().run(&["logs", "--on", &url, &name]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no process nope"), "{unknown:?}");
    assert!(
        !unknown.stderr.contains(&session),
        "keys stay out of errors"
    );
    assert!(!server.stderr().contains(&session), "and out of the log");
}

#[tokio::test]
async fn key_of_an_ended_session_is_removed() {
    let (server, url) = server_on(Transport::WebSocket).await;
    let user = new_user();
    let run = ["run", "--detach", "--on", &url, "--", "sleep", "1000"];
    let id = user.output(&run).await;
    let id = id.trim_end();
    let session = stored_session(&user, id);
    let client = server.connect().await;
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    client.call("initialize", resume).await;
    client.notify("initialized", json!({})).await;
    client.call("session/close", json!({})).await;
    drop(client);
    let gone = user.run(&["logs", "--on", &url, id]).await;
    assert_eq!(gone.code, Some(1));
    let message = format!(
        "outpost: no process {id}: it has ended, and its record was removed (closed_retention)\n"
    );
    assert_eq!(gone.stderr, message);
    assert!(!user.key_file(id).exists());
}

#[tokio::test]
async fn detached_work_needs_a_place_for_its_key() {
    let (server, url) = server_on(Transport::WebSocket).await;
    let user = new_user();
    fs::write(user.dir().join("state"), "").unwrap();
    let run = ["run", "--detach", "--on", &url, "--", "sleep", "1000"];
    let rejected = user.run(&run).await;
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(1), ""));
    assert!(
        rejected.stderr.contains("cannot store the key"),
        "{rejected:?}"
    );
    // The command isn't started, and its session is closed.
    deadline::poll_until("the end of the session", || {
        server.stderr().contains("session closed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn logs_over_tcp_yield_to_kill_and_resume() {
    let (_server, url) = server_on(Transport::WebSocket).await;
    let user = new_user();
    let script = "trap 'echo bye; exit 3' TERM; trap 'echo again' USR1; echo hi
        while :; do sleep 1000 & wait; done";
    let id = user
        .output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script])
        .await;
    let id = id.trim_end();
    let follow = ["logs", "--on", &url, "-f", id];
    let mut following = command(&follow, user.tag());
    following.env("XDG_STATE_HOME", user.dir().join("state"));
    let mut following = following.spawn().expect("spawn");
    let stdout = following.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines();
    let mut prints = async |printed: Option<&str>| {
        let line = deadline::expect_soon("a line", lines.next_line()).await;
        assert_eq!(line.expect("UTF-8").as_deref(), printed);
    };
    prints(Some("hi")).await;
    for _ in 0..3 {
        user.output(&["kill", "-USR1", "--on", &url, id]).await;
        prints(Some("again")).await;
    }
    let kill = user.output(&["kill", "--on", &url, id]).await;
    assert!(kill.ends_with(" has ended with 3\n"), "{kill}");
    prints(Some("bye")).await;
    prints(None).await;
    let followed = finish(following).await;
    assert_eq!(followed.status.code(), Some(0), "{followed:?}");
    assert_eq!(text(&followed.stderr), "");
}

#[tokio::test]
async fn second_logs_over_tcp_explains_what_to_do() {
    let (server, url) = server_on(Transport::WebSocket).await;
    let user = new_user();
    let script = "echo hi; exec sleep 1000";
    let id = user
        .output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script])
        .await;
    let id = id.trim_end();
    let client = server.connect().await;
    let session = stored_session(&user, id);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    client.call("initialize", resume).await;
    client.notify("initialized", json!({})).await;
    let second = user.run(&["logs", "--on", &url, id]).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    let message = format!("cannot use {id}: another command is attached to its session, ");
    assert!(second.stderr.contains(&message), "{second:?}");
    assert!(second.stderr.contains("unix socket"), "{second:?}");
    client.terminate(id).await;
}

#[tokio::test]
async fn failed_start_leaves_no_session() {
    let (server, url) = server_on(Transport::Unix).await;
    let failed = outpost()
        .run(&["run", "--detach", "--on", &url, "--", "/nope/nope"])
        .await;
    assert_eq!(failed.code, Some(127), "{failed:?}");
    let client = server.client().await;
    let list = client.call("session/list", json!({})).await;
    assert_eq!(
        list["sessions"].as_array().map(Vec::len),
        Some(1),
        "its own: {list}"
    );
}

#[tokio::test]
async fn default_server_keeps_a_session_for_a_day() {
    let server = outpost().start().await;
    let user = new_user();
    let url = &server.urls()[0];
    let script = "echo hi; exec sleep 1000";
    let started = user
        .run(&["run", "--detach", "--on", url, "--", "sh", "-c", script])
        .await;
    assert_eq!(started.code, Some(0), "{started:?}");
    assert_eq!(
        started.stderr,
        "outpost: the server keeps it for 24h without a connection\n"
    );
    let id = started.stdout.trim_end();
    user.output(&["kill", "--on", url, id]).await;
    assert_eq!(user.output(&["logs", "--on", url, "-f", id]).await, "hi\n");
}

#[tokio::test]
async fn server_without_leases_is_reported() {
    let args = ["--max-session-ttl", "1h"];
    let server = outpost().args(&args).start().await;
    let url = &server.urls()[0];
    let rejected = outpost()
        .run(&["run", "--detach", "--on", url, "--", "true"])
        .await;
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(1), ""));
    let printed = &rejected.stderr;
    assert!(printed.contains("--max-session-ttl unlimited"), "{printed}");
    assert!(!printed.contains("cannot reach"), "{printed}");
    assert!(!printed.contains("-32602"), "{printed}");
}

#[tokio::test]
async fn launched_server_cannot_be_detached_to() {
    for args in [
        &["ps"][..],
        &["logs", "x"],
        &["attach", "x"],
        &["kill", "x"],
        &["run", "-d", "true"],
    ] {
        let on = ["--on", "stdio:true"];
        let args: Vec<_> = args[..1]
            .iter()
            .chain(&on)
            .chain(&args[1..])
            .copied()
            .collect();
        let rejected = outpost().run(&args).await;
        assert_eq!(
            (rejected.code, rejected.stdout.as_str()),
            (Some(2), ""),
            "{args:?}"
        );
        assert!(rejected.stderr.contains("stdio:"), "{rejected:?}");
    }
    let help = outpost().run(&["ps", "--help"]).await.stdout;
    assert!(
        help.contains("unix:///PATH") && !help.contains("stdio:"),
        "{help}"
    );
}
