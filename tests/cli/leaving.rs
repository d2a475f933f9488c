//! What is left on a server when a command is over: nothing.

use outpost_testkit::{Link, Mark, Server, patience};
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Child;

use super::{command, ended, send, text};
use crate::outpost;

/// What a command there carries, to be told from the server and from us.
fn carried(mark: &Mark) -> String {
    format!("{}={}", Mark::VARIABLE, mark.as_str())
}

#[tokio::test]
async fn what_a_command_leaves_running_there_ends_with_it() {
    let server = outpost().start().await;
    let mark = Mark::new();
    let script = "setsid sh -c 'sleep 1000 & exec sleep 1000' >/dev/null 2>&1 </dev/null & exit 4";
    let variable = carried(&mark);
    let url = server.urls()[0].as_str();
    let args = [
        "run", "--on", url, "-e", &variable, "--", "sh", "-c", script,
    ];
    let child = command(&args, server.mark()).spawn().expect("it starts");
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(mark.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn one_command_after_the_other_needs_one_session() {
    let server = outpost().args(&["--max-sessions", "1"]).start().await;
    let url = server.urls()[0].as_str();
    let file = server.folder().join("file");
    std::fs::write(&file, "x").expect("it can be written");
    let file = file.to_str().expect("it is text");
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
        let ended = outpost().run(args).await;
        assert!(!ended.stderr.contains("overloaded"), "{args:?}: {ended:?}");
    }
    let client = server.connect().await;
    let hello = json!({"clientName": "test"});
    client.call("initialize", hello).await;
}

/// A command there of whose start we have not heard: the answer is held back.
async fn unheard_of(run: &[&str], server: &Server, link: &Link, mark: &Mark) -> Child {
    link.stall_at("sandboxType");
    let variable = carried(mark);
    let args = ["--on", link.url(), "-e", &variable, "--", "sleep", "1000"];
    let args = [run, &args].concat();
    let child = command(&args, server.mark()).spawn().expect("it starts");
    // The other one is the program, which has it on its command line.
    mark.alive(2).await;
    child
}

#[tokio::test]
async fn a_start_that_nobody_heard_of_is_ended_once_the_connection_is_back() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let mark = Mark::new();
    let child = unheard_of(&["run"], &server, &link, &mark).await;
    link.cut().await;
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("cannot start sleep: "), "{said}");
    assert_eq!(mark.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_start_that_somebody_does_not_wait_for_is_ended_with_its_session() {
    for (run, signal, code) in [
        (&["run"][..], Signal::INT, 130),
        (&["run"], Signal::TERM, 143),
        (&["mcp", "proxy"], Signal::TERM, 143),
    ] {
        let server = outpost().args(&["--max-sessions", "1"]).start().await;
        let link = Link::to(server.address()).await;
        let mark = Mark::new();
        let child = unheard_of(run, &server, &link, &mark).await;
        send(&child, signal);
        let ours = child.id().and_then(|id| i32::try_from(id).ok());
        patience::seen("the end of the command", || {
            let living = mark.living();
            living.iter().all(|pid| Some(*pid) == ours).then_some(())
        })
        .await;
        link.open();
        assert_eq!(ended(child).await.status.code(), Some(code));
        // There is room for one, so the next gets in only where nothing was left.
        let next = ["ls", "--on", server.urls()[0].as_str(), "/"];
        let next = outpost().run(&next).await;
        assert_eq!(next.code, Some(0), "{run:?}: {next:?}");
    }
}
