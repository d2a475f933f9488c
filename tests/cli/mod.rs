//! Commands for people, as they are typed: on pipes and on a real terminal.

mod attach;
mod completions;
mod cp;
mod cp_trouble;
mod detached;
mod elsewhere;
mod files;
mod home;
mod kill;
mod launched;
mod leaving;
mod logs;
mod ps;
mod released;
mod run;
mod run_on;
mod sandbox;
mod stop;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use outpost_testkit::{Home, Mark, patience};
use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::outpost;

/// A user who has no server yet.
fn home() -> Home {
    Home::of(env!("CARGO_BIN_EXE_outpost"))
}

/// The program with these arguments, on pipes; what it starts carries the mark.
fn command(args: &[&str], mark: &Mark) -> Command {
    let mut command = Command::new(outpost().binary());
    command
        .args(args)
        .env(Mark::VARIABLE, mark.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs it to its end with this input, and sees that nothing is left.
async fn outcome(args: &[&str], input: &[u8]) -> Output {
    let mark = Mark::new();
    let mut child = command(args, &mark).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let feeding = async {
        // One that isn't read to its end is no mistake of ours.
        let _ = stdin.write_all(input).await;
        drop(stdin);
    };
    let (output, ()) = tokio::join!(ended(child), feeding);
    mark.gone().await;
    output
}

async fn ended(child: Child) -> Output {
    patience::soon("the end of the program", child.wait_with_output())
        .await
        .expect("it can be waited for")
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, signal).expect("it is there");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// Waits until a process has something open in a folder, by whatever name.
async fn has_open(pid: i32, folder: &Path) {
    patience::seen("an open file", || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let mut paths = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        paths
            .any(|path: PathBuf| path.starts_with(folder))
            .then_some(())
    })
    .await;
}

/// A server that a command launches, and that can be killed.
struct Launched {
    /// What names it.
    on: String,
    pid_file: PathBuf,
}

impl Launched {
    fn new(folder: &Path) -> Self {
        let pid_file = folder.join("pid");
        let on = format!(
            "stdio:sh -c 'echo $$ > {}; exec {} serve --listen stdio://'",
            pid_file.display(),
            outpost().binary().display()
        );
        Launched { on, pid_file }
    }

    async fn pid(&self) -> i32 {
        patience::seen("a launched server", || {
            let written = std::fs::read_to_string(&self.pid_file).ok()?;
            written.strip_suffix('\n')?.parse().ok()
        })
        .await
    }

    async fn kill(&self) {
        let pid = Pid::from_raw(self.pid().await).expect("a number");
        rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
    }
}
