//! Detached work on a server that was named.

use outpost_testkit::{Server, Transport, patience};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{command, ended, text};
use crate::outpost;

async fn on(transport: Transport) -> (Server, String) {
    let args = ["--max-session-ttl", "unlimited"];
    let server = outpost().on(transport).args(&args).start().await;
    let url = server.urls()[0].clone();
    (server, url)
}

/// Runs a command that has to succeed, and gives what it printed.
async fn output(args: &[&str]) -> String {
    let ended = outpost().run(args).await;
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended.stdout
}

#[tokio::test]
async fn over_a_unix_socket_it_is_as_at_home() {
    let (_server, url) = on(Transport::Unix).await;
    let script = "echo hi; exec sleep 1000";
    let id = output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script]).await;
    let id = id.trim_end();
    assert_eq!(id.len(), 8, "{id}");
    let ps = output(&["ps", "--on", &url]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    output(&["kill", "--on", &url, &id[..4]]).await;
    assert_eq!(output(&["logs", "--on", &url, "-f", id]).await, "hi\n");
}

#[tokio::test]
async fn over_tcp_the_key_of_the_session_is_part_of_the_id() {
    let (server, url) = on(Transport::WebSocket).await;
    let script = "echo hi; exec sleep 1000";
    let id = output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script]).await;
    let id = id.trim_end();
    let (session, process) = id.split_once('/').expect("SESSION/PROCESS");
    assert_eq!((session.len(), process.len()), (36, 8), "{id}");
    let kill = output(&["kill", "--on", &url, id]).await;
    assert!(kill.starts_with(&format!("{process} has ended")), "{kill}");
    assert_eq!(output(&["logs", "--on", &url, "-f", id]).await, "hi\n");

    let short = outpost().run(&["logs", "--on", &url, process]).await;
    assert_eq!(short.code, Some(1));
    assert!(short.stderr.contains("SESSION/PROCESS"), "{short:?}");
    let unknown = outpost()
        .run(&["logs", "--on", &url, &format!("{session}/nope")])
        .await;
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no process nope"), "{unknown:?}");
    assert!(!unknown.stderr.contains(session), "keys stay out of errors");
    assert!(!server.stderr().contains(session), "and out of the log");
}

#[tokio::test]
async fn over_tcp_who_follows_it_makes_way_for_a_kill_and_comes_back() {
    let (server, url) = on(Transport::WebSocket).await;
    let script = "trap 'echo bye; exit 3' TERM; trap 'echo again' USR1; echo hi
        while :; do sleep 1000 & wait; done";
    let id = output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script]).await;
    let id = id.trim_end();
    let follow = ["logs", "--on", &url, "-f", id];
    let mut following = command(&follow, server.mark()).spawn().expect("it starts");
    let stdout = following.stdout.take().expect("it was asked for");
    let mut lines = BufReader::new(stdout).lines();
    let mut prints = async |said: Option<&str>| {
        let line = patience::soon("a line", lines.next_line()).await;
        assert_eq!(line.expect("it is text").as_deref(), said);
    };
    prints(Some("hi")).await;
    for _ in 0..3 {
        output(&["kill", "-USR1", "--on", &url, id]).await;
        prints(Some("again")).await;
    }
    let kill = output(&["kill", "--on", &url, id]).await;
    assert!(kill.ends_with(" has ended with 3\n"), "{kill}");
    prints(Some("bye")).await;
    prints(None).await;
    let followed = ended(following).await;
    assert_eq!(followed.status.code(), Some(0), "{followed:?}");
    assert_eq!(text(&followed.stderr), "");
}

#[tokio::test]
async fn over_tcp_one_follows_and_the_next_is_told_what_to_do() {
    let (server, url) = on(Transport::WebSocket).await;
    let script = "echo hi; exec sleep 1000";
    let id = output(&["run", "--detach", "--on", &url, "--", "sh", "-c", script]).await;
    let id = id.trim_end();
    let client = server.connect().await;
    let (session, process) = id.split_once('/').expect("SESSION/PROCESS");
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    client.call("initialize", resume).await;
    client.notify("initialized", json!({})).await;
    let second = outpost().run(&["logs", "--on", &url, id]).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    let words = format!("another command is following {process} or attached to it, ");
    assert!(second.stderr.contains(&words), "{second:?}");
    assert!(second.stderr.contains("unix socket"), "{second:?}");
    client.terminate(process).await;
}

#[tokio::test]
async fn what_can_not_be_started_leaves_no_session() {
    let (server, url) = on(Transport::Unix).await;
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
async fn a_server_as_it_comes_keeps_it_for_a_day() {
    let server = outpost().start().await;
    let url = &server.urls()[0];
    let script = "echo hi; exec sleep 1000";
    let started = outpost()
        .run(&["run", "--detach", "--on", url, "--", "sh", "-c", script])
        .await;
    assert_eq!(started.code, Some(0), "{started:?}");
    assert_eq!(
        started.stderr,
        "outpost: the server keeps it for 24h without a connection\n"
    );
    let id = started.stdout.trim_end();
    output(&["kill", "--on", url, id]).await;
    assert_eq!(output(&["logs", "--on", url, "-f", id]).await, "hi\n");
}

#[tokio::test]
async fn a_server_that_keeps_nothing_says_so() {
    let args = ["--max-session-ttl", "1h"];
    let server = outpost().args(&args).start().await;
    let url = &server.urls()[0];
    let refused = outpost()
        .run(&["run", "--detach", "--on", url, "--", "true"])
        .await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let said = &refused.stderr;
    assert!(said.contains("--max-session-ttl unlimited"), "{said}");
    assert!(!said.contains("cannot reach"), "{said}");
    assert!(!said.contains("-32602"), "{said}");
}

#[tokio::test]
async fn a_server_can_be_launched_for_a_run_only() {
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
        let refused = outpost().run(&args).await;
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (Some(2), ""),
            "{args:?}"
        );
        assert!(refused.stderr.contains("stdio:"), "{refused:?}");
    }
    let help = outpost().run(&["ps", "--help"]).await.stdout;
    assert!(
        help.contains("unix:///PATH") && !help.contains("stdio:"),
        "{help}"
    );
}
