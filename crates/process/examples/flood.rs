//! Measures the throughput of reading output, compared with a plain blocking reader of the same pipe.
//!
//! `cargo run --release -p outpost-process --example flood [MIB [LIMIT_KIB]]`
#![expect(clippy::print_stdout, reason = "prints measurements")]

use std::io::Read;
use std::process::{Command as Bare, Stdio as BareStdio};
use std::time::Instant;

use outpost_process::{Command, ReadOutcome, Spawner, SpawnerOptions, Stdio, TerminalSize};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mib: u64 = arguments.next().map_or(Ok(1024), |mib| mib.parse())?;
    let limit: usize = arguments.next().map_or(Ok(256), |limit| limit.parse())?;
    let spawner = Spawner::new(SpawnerOptions::default())?;
    let pty = Stdio::Pty {
        size: TerminalSize { rows: 24, cols: 80 },
    };
    for round in 0..3 {
        let start = Instant::now();
        bare(mib)?;
        show(round, "bare reader", mib, 0, start);
        for (name, mib, stdio) in [
            ("pipe", mib, Stdio::Pipes { stdin: false }),
            ("pty", mib / 8, pty),
        ] {
            let start = Instant::now();
            let reads = ours(&spawner, mib, limit * 1024, stdio).await?;
            show(round, name, mib, reads, start);
        }
    }
    Ok(())
}

fn bytes(mib: u64) -> String {
    (mib * 1024 * 1024).to_string()
}

fn bare(mib: u64) -> Outcome<()> {
    let mut child = Bare::new("head")
        .args(["-c", &bytes(mib), "/dev/zero"])
        .stdout(BareStdio::piped())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or("no pipe")?;
    let mut buffer = vec![0; 64 * 1024];
    while stdout.read(&mut buffer)? > 0 {}
    child.wait()?;
    Ok(())
}

async fn ours(spawner: &Spawner, mib: u64, limit: usize, stdio: Stdio) -> Outcome<usize> {
    let head = ["head", "-c", &bytes(mib), "/dev/zero"];
    let mut child = spawner
        .spawn(Command {
            argv: head.iter().map(Into::into).collect(),
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            stdio,
            wrapper: None,
        })
        .await?;
    // Keep the newest megabyte, as a journal does.
    let mut kept = std::collections::VecDeque::new();
    let (mut total, mut held, mut reads) = (0, 0, 0);
    loop {
        child.outputs[0].readable().await?;
        match child.outputs[0].read(limit) {
            ReadOutcome::Data(data) => {
                total += data.len() as u64;
                held += data.len();
                reads += 1;
                kept.push_back(data);
                while held > 1024 * 1024 {
                    held -= kept.pop_front().map_or(0, |data| data.len());
                }
            }
            ReadOutcome::Empty => {}
            ReadOutcome::End => break,
        }
    }
    assert_eq!(total, mib * 1024 * 1024);
    child.exit.wait().await;
    child.exit.reap();
    Ok(reads)
}

fn show(round: usize, name: &str, mib: u64, reads: usize, start: Instant) {
    let time = start.elapsed();
    let rate = mib as f64 / time.as_secs_f64();
    println!("{round} {name:12} {rate:8.0} MiB/s  {reads} reads");
}
