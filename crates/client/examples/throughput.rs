//! Measures the throughput of output, compared with a plain pipe: 100 MB each, three rounds.
//!
//! `cargo run --release -p outpost-client --example throughput [URL]`

use std::{
    io::{Read, Write},
    process::Stdio,
    sync::Arc,
    time::Instant,
};

use outpost_client::{
    Event, Executor, LocalExecutor, LocalOptions, RemoteExecutor, RemoteOptions, Start,
};

const BYTES: usize = 100_000_000;
const SCRIPT: &str = "exec head -c 100000000 /dev/zero";

fn plain_pipe() -> std::io::Result<f64> {
    let before = Instant::now();
    let mut child = std::process::Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    if let Some(stdout) = &mut child.stdout {
        loop {
            match stdout.read(&mut buffer)? {
                0 => break,
                count => total += count,
            }
        }
    }
    child.wait()?;
    assert_eq!(total, BYTES);
    Ok(rate(before))
}

async fn through(executor: &dyn Executor) -> Result<f64, outpost_client::Error> {
    let before = Instant::now();
    let start = Start::shell(SCRIPT).cwd("/").env("PATH", "/usr/bin:/bin");
    let process = executor.start(start).await?;
    let mut events = process.events();
    let mut total = 0;
    while let Some(event) = events.next().await {
        if let Event::Output { bytes, .. } = event {
            total += bytes.len();
        }
    }
    assert_eq!(total, BYTES);
    Ok(rate(before))
}

fn rate(before: Instant) -> f64 {
    BYTES as f64 / 1e6 / before.elapsed().as_secs_f64()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executors: Vec<(&str, Arc<dyn Executor>)> = Vec::new();
    executors.push((
        "local",
        Arc::new(LocalExecutor::new(LocalOptions::default())?),
    ));
    if let Some(url) = std::env::args().nth(1) {
        let remote = RemoteExecutor::connect(&url, RemoteOptions::default()).await?;
        executors.push(("remote", Arc::new(remote)));
    }
    let mut out = std::io::stdout();
    for _ in 0..3 {
        let pipe = tokio::task::spawn_blocking(plain_pipe).await??;
        write!(out, "pipe {pipe:.0} MB/s")?;
        for (name, executor) in &executors {
            let rate = through(&**executor).await?;
            write!(out, ", {name} {rate:.0} MB/s ({:.2})", rate / pipe)?;
        }
        writeln!(out)?;
    }
    for (_, executor) in executors {
        executor.close().await?;
    }
    Ok(())
}
