//! Follows a process on a server, through lost connections and from a second client.
//!
//! `cargo run -p outpost-client --example follow_and_reconnect -- ws://127.0.0.1:40123`

use std::{io::Write as _, time::Duration};

use outpost_client::{Event, Executor, Lease, RemoteExecutor, RemoteOptions, Start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: URL of the server")?;
    let mut out = std::io::stdout();

    // The session, and so the process, survives one minute without a connection.
    let options = RemoteOptions::default().lease(Lease::For(Duration::from_secs(60)));
    let first = RemoteExecutor::connect(&url, options).await?;
    let session = first.session_id().ok_or("the server has no sessions")?;
    let session = session.to_owned();
    let script = "for n in 1 2 3 4 5; do echo $n; sleep 1; done";
    let process = first.start(Start::shell(script).inherit_env()).await?;
    let id = process.id().to_owned();

    // Read the first event, then disconnect. A connection that is lost instead would be replaced
    // in the background, and this stream would continue.
    let mut events = process.events();
    events.next().await;
    let last_seq = events.last_seq();
    process.detach();
    first.close().await?;

    // Another client resumes the session and continues after the last event.
    let second = RemoteExecutor::connect(&url, RemoteOptions::default().resume(session)).await?;
    let mut state = second.connection_state();
    tokio::spawn(async move {
        while state.changed().await.is_ok() {
            let now = state.borrow_and_update().clone();
            let _ = writeln!(std::io::stderr(), "connection: {now:?}");
        }
    });
    let process = second.attach(&id, last_seq).await?;
    let mut events = process.events_after(last_seq);
    while let Some(event) = events.next().await {
        match event {
            Event::Output { bytes, .. } => out.write_all(&bytes)?,
            Event::Exited { code, .. } => writeln!(out, "exit code {code}")?,
            Event::Closed { .. } => {}
            Event::Failed { error } => return Err(error.into()),
        }
    }
    second.close_session().await?;
    second.close().await?;
    Ok(())
}
