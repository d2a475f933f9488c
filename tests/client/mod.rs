//! Our own client with the real server.

mod cuts;
mod sandboxes;
mod sessions;
mod transports;

use outpost_client::{Error, Place as _, Process, Remote, RemoteOptions, Start};
use outpost_testkit::{Mark, Server};

/// A script whose process carries the server's mark.
fn script(server: &Server, script: &str) -> Start {
    Start::shell(script)
        .cwd("/tmp")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(Mark::VARIABLE, server.mark().as_str())
}

async fn connect(url: &str) -> Result<Remote, Error> {
    Remote::connect(url, RemoteOptions::default()).await
}

/// What a process writes, all of it, and its exit code.
async fn output(process: &Process) -> (String, i32) {
    let mut events = process.events();
    let mut text = Vec::new();
    let mut exit = None;
    let mut closed = false;
    while let Some(event) = outpost_testkit::patience::soon("an event", events.next()).await {
        match event {
            outpost_client::Event::Output { bytes, .. } => text.extend_from_slice(&bytes),
            outpost_client::Event::Exited { code, .. } => exit = Some(code),
            outpost_client::Event::Closed { .. } => closed = true,
            outpost_client::Event::Failed { message } => panic!("{message}"),
        }
    }
    assert!(closed);
    let text = String::from_utf8_lossy(&text).into_owned();
    (text, exit.unwrap_or_else(|| panic!("no exit")))
}

/// One command, from its start to its end.
async fn run(remote: &Remote, start: Start) -> (String, i32) {
    let process = remote.start(start).await;
    let process = process.unwrap_or_else(|error| panic!("{error}"));
    output(&process).await
}
