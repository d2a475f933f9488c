//! Tests the Rust client against the real server.

mod cuts;
mod sandboxes;
mod sessions;
mod transports;
mod watches;

use outpost_client::{Error, Executor as _, Process, RemoteExecutor, RemoteOptions, Start};
use outpost_testkit::{Server, TestTag};

/// A script whose process carries the server's tag.
fn script(server: &Server, script: &str) -> Start {
    Start::shell(script)
        .cwd("/tmp")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(TestTag::VARIABLE, server.tag().as_str())
}

async fn connect(url: &str) -> Result<RemoteExecutor, Error> {
    RemoteExecutor::connect(url, RemoteOptions::default()).await
}

/// Collects all output of a process and its exit code.
async fn output(process: &Process) -> (String, i32) {
    let mut events = process.events();
    let mut text = Vec::new();
    let mut exit = None;
    let mut closed = false;
    while let Some(event) = outpost_testkit::deadline::expect_soon("an event", events.next()).await
    {
        match event {
            outpost_client::Event::Output { bytes, .. } => text.extend_from_slice(&bytes),
            outpost_client::Event::Exited { code, .. } => exit = Some(code),
            outpost_client::Event::Closed { .. } => closed = true,
            outpost_client::Event::Failed { error } => panic!("{error}"),
        }
    }
    assert!(closed);
    let text = String::from_utf8_lossy(&text).into_owned();
    (text, exit.unwrap_or_else(|| panic!("no exit")))
}

/// Runs a command until it exits.
async fn run(remote: &RemoteExecutor, start: Start) -> (String, i32) {
    let process = remote.start(start).await;
    let process = process.unwrap_or_else(|error| panic!("{error}"));
    output(&process).await
}
