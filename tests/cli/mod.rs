//! Tests the command line for people, on pipes and on a real terminal.

mod attach;
mod completions;
mod cp;
mod cp_errors;
mod detached;
mod detached_on;
mod doctor;
mod files;
mod hostile;
mod hosts;
mod invalid_hosts;
mod kill;
mod launched;
mod limits;
mod logs;
mod network;
mod ps;
mod ps_network;
mod released;
mod run;
mod run_on;
mod run_on_cleanup;
mod sandbox;
mod sandbox_state;
mod ssh;
mod stop;
mod terminal;
mod user_server;
mod watch;
mod watch_failures;
mod watch_restart;

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use outpost_testkit::{TestTag, TestUser, deadline};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::outpost;

/// Creates a user without a running server.
fn new_user() -> TestUser {
    TestUser::new(env!("CARGO_BIN_EXE_outpost"))
}

/// Builds a command on pipes whose processes carry `tag`.
fn command(args: &[&str], tag: &TestTag) -> Command {
    let mut command = Command::new(outpost().binary());
    command
        .args(args)
        .env(TestTag::VARIABLE, tag.as_str())
        .env("XDG_STATE_HOME", tag.state_home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a command with this input until it exits, and checks that no process is left.
async fn outcome(args: &[&str], input: &[u8]) -> Output {
    let tag = TestTag::new();
    let mut child = command(args, &tag).spawn().expect("spawn");
    let mut stdin = child.stdin.take().expect("piped");
    let write_input = async {
        // Fails if the program exits without reading all of it, which is fine.
        let _ = stdin.write_all(input).await;
        drop(stdin);
    };
    let (output, ()) = tokio::join!(finish(child), write_input);
    tag.gone().await;
    output
}

async fn finish(child: Child) -> Output {
    deadline::expect_soon("the end of the program", child.wait_with_output())
        .await
        .expect("wait")
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, signal).expect("it exists");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Notices that a process opens a file, or a file in a directory. The descriptors of the server can't
/// be listed.
struct OpenWatch(OwnedFd);

impl OpenWatch {
    fn new(path: &Path) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
        inotify::add_watch(&watch, path, WatchFlags::OPEN).expect("a watch");
        OpenWatch(watch)
    }

    /// Waits until a file was opened since [`new`](Self::new).
    async fn opened(&self) {
        deadline::poll_until("an open file", || {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(&self.0, &mut buffer);
            while let Ok(event) = events.next() {
                if !event.events().contains(ReadFlags::ISDIR) {
                    return Some(());
                }
            }
            None
        })
        .await;
    }
}

/// A server launched by a command, which the test can kill.
struct Launched {
    /// The value for `--on`.
    on: String,
    pid_file: PathBuf,
}

impl Launched {
    fn new(dir: &Path) -> Self {
        let pid_file = dir.join("pid");
        let on = format!(
            "stdio:sh -c 'echo $$ > {}; exec {} serve --listen stdio://'",
            pid_file.display(),
            outpost().binary().display()
        );
        Launched { on, pid_file }
    }

    async fn pid(&self) -> i32 {
        deadline::poll_until("a launched server", || {
            let written = std::fs::read_to_string(&self.pid_file).ok()?;
            written.strip_suffix('\n')?.parse().ok()
        })
        .await
    }

    async fn kill(&self) {
        let pid = Pid::from_raw(self.pid().await).expect("a number");
        rustix::process::kill_process(pid, Signal::KILL).expect("it exists");
    }
}
