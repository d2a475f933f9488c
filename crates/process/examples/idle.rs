//! Measures the memory that an idle child costs this program.
//!
//! `cargo run --release -p outpost-process --example idle [CHILDREN]`
#![expect(clippy::print_stdout, reason = "prints measurements")]

use outpost_process::{Child, Command, ReadOutcome, Spawner, SpawnerOptions, Stdio, TerminalSize};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(500), |n| n.parse())?;
    let spawner = Spawner::new(SpawnerOptions::default())?;
    let size = TerminalSize { rows: 24, cols: 80 };
    for stdio in [Stdio::Pipes { stdin: true }, Stdio::Pty { size }] {
        let _warm = idle(&spawner, stdio).await?;
        let before = resident()?;
        let mut children = Vec::new();
        for _ in 0..count {
            children.push(idle(&spawner, stdio).await?);
        }
        let each = (resident()? - before) as f64 / count as f64;
        println!("{stdio:?}: {before} KiB, and {each:.1} KiB for each of {count}");
        for child in &children {
            child.control.kill_tree()?;
        }
        for mut child in children {
            child.exit.wait().await;
            child.exit.reap();
        }
    }
    Ok(())
}

async fn idle(spawner: &Spawner, stdio: Stdio) -> Outcome<Child> {
    let script = ["sh", "-c", "echo hello; exec sleep 1000"];
    let mut child = spawner
        .spawn(Command {
            argv: script.map(Into::into).into(),
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            stdio,
            wrapper: None,
        })
        .await?;
    loop {
        child.outputs[0].readable().await?;
        if let ReadOutcome::Data(_) = child.outputs[0].read(65536) {
            return Ok(child);
        }
    }
}

fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no such line")?.parse()?)
}
