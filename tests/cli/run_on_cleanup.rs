//! Tests that `outpost run --on` leaves no process and no session on the server.

use outpost_testkit::{FaultyLink, Server, TestTag, deadline};
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Child;

use super::{command, finish, send, text};
use crate::outpost;

/// The variable that marks the remote command's processes, apart from those of the server and of
/// the test.
fn tag_variable(tag: &TestTag) -> String {
    format!("{}={}", TestTag::VARIABLE, tag.as_str())
}

#[tokio::test]
async fn leftover_processes_end_with_the_command() {
    let server = outpost().start().await;
    let tag = TestTag::new();
    let script = "setsid sh -c 'sleep 1000 & exec sleep 1000' >/dev/null 2>&1 </dev/null & exit 4";
    let variable = tag_variable(&tag);
    let url = server.urls()[0].as_str();
    let args = [
        "run", "--on", url, "-e", &variable, "--", "sh", "-c", script,
    ];
    let child = command(&args, server.tag()).spawn().expect("spawn");
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(tag.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn consecutive_commands_use_one_session_each() {
    let server = outpost().args(&["--max-sessions", "1"]).start().await;
    let url = server.urls()[0].as_str();
    let file = server.dir().join("file");
    std::fs::write(&file, "x").expect("it can be written");
    let file = file.to_str().expect("UTF-8");
    let copy = format!("{file}.copy");
    for args in [
        &["run", "--on", url, "--", "true"][..],
        &["run", "--on", url, "--", "/no/such/program"],
        &["ls", "--on", url, "/"],
        &["cat", "--on", url, file],
        &["cp", "--on", url, file, &format!(":{copy}")],
        &["mcp", "proxy", "--on", url, "--", "true"],
        &["mcp", "proxy", "--on", url, "--", "/no/such/program"],
        &["mcp", "serve", "--on", url],
        &["run", "--on", url, "--", "true"],
    ] {
        let output = outpost().run(args).await;
        assert!(
            !output.stderr.contains("overloaded"),
            "{args:?}: {output:?}"
        );
    }
    let client = server.connect().await;
    let hello = json!({"clientName": "test"});
    client.call("initialize", hello).await;
}

/// Starts a remote command whose start response is held back by the link.
async fn start_with_held_response(
    run: &[&str],
    server: &Server,
    link: &FaultyLink,
    tag: &TestTag,
) -> Child {
    link.stall_at("sandboxType");
    let variable = tag_variable(tag);
    let args = ["--on", link.url(), "-e", &variable, "--", "sleep", "1000"];
    let args = [run, &args].concat();
    let child = command(&args, server.tag()).spawn().expect("spawn");
    // Two: the remote command, and the local program, which has the tag in its arguments.
    tag.alive(2).await;
    child
}

#[tokio::test]
async fn start_with_lost_response_is_terminated_after_reconnect() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let tag = TestTag::new();
    let child = start_with_held_response(&["run"], &server, &link, &tag).await;
    link.cut().await;
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    let printed = text(&output.stderr);
    assert!(printed.contains("cannot start sleep: "), "{printed}");
    assert_eq!(tag.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn abandoned_start_is_terminated_with_its_session() {
    for (run, signal, code) in [
        (&["run"][..], Signal::INT, 130),
        (&["run"], Signal::TERM, 143),
        (&["mcp", "proxy"], Signal::TERM, 143),
    ] {
        let server = outpost().args(&["--max-sessions", "1"]).start().await;
        let link = FaultyLink::to(server.address()).await;
        let tag = TestTag::new();
        let child = start_with_held_response(run, &server, &link, &tag).await;
        send(&child, signal);
        let ours = child.id().and_then(|id| i32::try_from(id).ok());
        deadline::poll_until("the end of the command", || {
            let living = tag.living();
            living.iter().all(|pid| Some(*pid) == ours).then_some(())
        })
        .await;
        link.open();
        assert_eq!(finish(child).await.status.code(), Some(code));
        // The server allows one session, so this succeeds only if the previous one was closed.
        let next = ["ls", "--on", server.urls()[0].as_str(), "/"];
        let next = outpost().run(&next).await;
        assert_eq!(next.code, Some(0), "{run:?}: {next:?}");
    }
}
