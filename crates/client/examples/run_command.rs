//! Runs a command and prints its output.
//!
//! `cargo run -p outpost-client --example run_command -- uname -a`

use std::io::Write as _;

use outpost_client::{Event, Executor, LocalExecutor, LocalOptions, Start, Stream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        command = vec!["/bin/echo".to_owned(), "hello".to_owned()];
    }
    let executor = LocalExecutor::new(LocalOptions::default())?;
    let process = executor.start(Start::new(command).inherit_env()).await?;

    let mut events = process.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Output { stream, bytes, .. } => match stream {
                Stream::Stderr => std::io::stderr().write_all(&bytes)?,
                Stream::Stdout | Stream::Pty => std::io::stdout().write_all(&bytes)?,
            },
            Event::Exited { code, .. } => writeln!(std::io::stderr(), "exit code {code}")?,
            Event::Closed { .. } => {}
            Event::Failed { error } => return Err(error.into()),
        }
    }
    executor.close().await?;
    Ok(())
}
