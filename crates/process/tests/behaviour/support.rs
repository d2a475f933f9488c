//! Shared test functions: starting, reading to the end, waiting for other processes, cleaning up.

use std::ffi::OsString;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use outpost_process::{
    Child, Command, Control, Exit, Input, Output, ReadOutcome, ReaperCommand, ResourceLimits,
    Spawner, SpawnerOptions, Stdio, TerminalSize, TreeChoice,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

/// Far longer than any test takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const PIPES: Stdio = Stdio::Pipes { stdin: false };
pub(crate) const PIPES_AND_STDIN: Stdio = Stdio::Pipes { stdin: true };
pub(crate) const PTY: Stdio = Stdio::Pty {
    size: TerminalSize { rows: 24, cols: 80 },
};

pub(crate) fn spawner() -> Spawner {
    Spawner::new(SpawnerOptions::default()).expect("a spawner starts")
}

pub(crate) fn group_spawner() -> Spawner {
    let options = SpawnerOptions {
        trees: TreeChoice::Group,
        ..SpawnerOptions::default()
    };
    Spawner::new(options).expect("a spawner starts")
}

pub(crate) fn subreaper_spawner() -> Spawner {
    let options = SpawnerOptions {
        trees: TreeChoice::Subreaper,
        subreaper: Some(reaper_command()),
        ..SpawnerOptions::default()
    };
    Spawner::new(options).expect("a spawner starts")
}

/// Nextest sets the path if the tests do not run where they were built.
pub(crate) fn reaper_command() -> ReaperCommand {
    let built = || env!("CARGO_BIN_EXE_subreaper").into();
    ReaperCommand {
        program: std::env::var_os("NEXTEST_BIN_EXE_subreaper").map_or_else(built, Into::into),
        args: Vec::new(),
    }
}

/// A spawner for each kind of tree that this host supports.
pub(crate) fn spawner_of_each_kind() -> impl Iterator<Item = Spawner> {
    let cgroups = || {
        Spawner::new(SpawnerOptions {
            trees: TreeChoice::Cgroup,
            ..SpawnerOptions::default()
        })
    };
    let kinds: [fn() -> Option<Spawner>; 2] =
        [|| Some(subreaper_spawner()), || Some(group_spawner())];
    std::iter::once_with(move || cgroups().ok())
        .chain(kinds.into_iter().map(|kind| kind()))
        .flatten()
}

pub(crate) fn command(argv: &[&str], stdio: Stdio) -> Command {
    Command {
        argv: argv.iter().map(OsString::from).collect(),
        arg0: None,
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        stdio,
        limits: ResourceLimits::default(),
        passed: Vec::new(),
        wrapper: None,
    }
}

pub(crate) fn sh(script: &str, stdio: Stdio) -> Command {
    command(&["sh", "-c", script], stdio)
}

/// A child whose tree is killed at the end of the test.
pub(crate) struct Started {
    child: Child,
    end: KillTree,
}

struct KillTree(Option<Control>);

impl Started {
    /// Returns the child, which is then not killed automatically.
    pub(crate) fn into_inner(self) -> Child {
        let Started { child, mut end } = self;
        end.0 = None;
        child
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for KillTree {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            let _ = control.kill_tree();
        }
    }
}

pub(crate) async fn start(spawner: &Spawner, command: Command) -> Started {
    let spawned = within("the start", spawner.spawn(command)).await;
    let child = spawned.expect("the program starts");
    let end = KillTree(Some(child.control.clone()));
    Started { child, end }
}

/// A process outside any tree that is killed at the end of the test.
pub(crate) struct KillOnDrop(pub(crate) i32);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Output and exit status of a child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit: Exit,
}

/// Runs a command until it has exited and all its streams have ended.
pub(crate) async fn run(spawner: &Spawner, command: Command) -> Finished {
    let mut child = start(spawner, command).await;
    finish(&mut child).await
}

pub(crate) async fn finish(child: &mut Child) -> Finished {
    let mut streams = Vec::new();
    for output in &mut child.outputs {
        let bytes = within("the end of a stream", read_to_end(output)).await;
        streams.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    let exit = within("the exit", child.exit.wait()).await;
    child.exit.reap();
    child.control.release_tree();
    let mut streams = streams.into_iter();
    Finished {
        stdout: streams.next().unwrap_or_default(),
        stderr: streams.next().unwrap_or_default(),
        exit,
    }
}

pub(crate) async fn read_to_end(output: &mut Output) -> Vec<u8> {
    read_until(output, |_| false).await
}

/// Reads until `enough` returns true or the stream ends.
pub(crate) async fn read_until(output: &mut Output, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !enough(&bytes) {
        output.readable().await.expect("the runtime works");
        match output.read(1024 * 1024) {
            ReadOutcome::Data(data) => bytes.extend_from_slice(&data),
            ReadOutcome::Empty => {}
            ReadOutcome::End => break,
        }
    }
    bytes
}

/// Reads until `text` has appeared, and returns everything up to then.
pub(crate) async fn expect(output: &mut Output, text: &str) -> String {
    let seen = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
    let bytes = within(text, read_until(output, seen)).await;
    assert!(seen(&bytes), "{text:?} is not in {bytes:?}");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a line of the form `KEY NUMBER`.
pub(crate) async fn expect_number(output: &mut Output, key: &str) -> i32 {
    let seen = |bytes: &[u8]| number_after(bytes, key).is_some();
    let bytes = within(key, read_until(output, seen)).await;
    number_after(&bytes, key).unwrap_or_else(|| panic!("no {key:?} in {bytes:?}"))
}

fn number_after(bytes: &[u8], key: &str) -> Option<i32> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (line, _) = text.split_once(key)?.1.split_once('\n')?;
    line.trim().parse().ok()
}

pub(crate) async fn write_all(input: &Input, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        within("space to write", input.writable())
            .await
            .expect("the runtime works");
        match input.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("writing failed: {error}"),
        }
    }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {TIMEOUT:?} for {what}"),
    }
}

/// Waits for the exit of a process that may not be a child.
pub(crate) async fn gone(pid: i32) {
    let ended = tokio::task::spawn_blocking(move || {
        let pid = Pid::from_raw(pid).expect("a process number");
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return true;
        };
        let limit = Timespec {
            tv_sec: TIMEOUT.as_secs().cast_signed(),
            tv_nsec: 0,
        };
        let mut end = [PollFd::new(&pidfd, PollFlags::IN)];
        rustix::event::poll(&mut end, Some(&limit)).is_ok_and(|ready| ready > 0)
    });
    assert!(ended.await.expect("the poll works"), "{pid} is still alive");
}

/// Whether a process runs and is not a zombie.
pub(crate) fn is_running(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The state letter of a process in `/proc/PID/stat`.
pub(crate) fn state(pid: i32) -> Option<char> {
    stat(pid)?.split(' ').next()?.chars().next()
}

/// The fields after pid and name in `/proc/PID/stat`: state, parent, group, session.
pub(crate) fn stat(pid: i32) -> Option<String> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(line.rsplit_once(") ")?.1.to_owned())
}

/// Polls a condition that causes no event.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let mut turn = tokio::time::interval(Duration::from_millis(5));
    let turns = async {
        while !condition() {
            turn.tick().await;
        }
    };
    within(what, turns).await;
}

/// The pid of a child.
pub(crate) fn pid(child: &Child) -> i32 {
    child.control.pid().cast_signed()
}

/// Writes an executable script.
pub(crate) fn script(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("the script is written");
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("the mode is set");
}
