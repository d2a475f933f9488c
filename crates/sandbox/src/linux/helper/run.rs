//! Confines the helper itself and then executes the program, or serves file operations.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags};

use super::config::HelperConfig;
use super::report::{Report, Step};
use super::{CHANNEL_FD, SELF_FD, STDIN_FD, capabilities, channel, inherited, mount_setup};
use crate::Level;
use crate::linux::landlock;
use crate::linux::seccomp;
use crate::linux::sys;

/// Returns if a step failed, after reporting it, or when `serve` has returned.
pub(super) fn run(serve: impl FnOnce(OwnedFd)) {
    match confine_and_execute() {
        Ok(ReadyToServe { channel, init }) => {
            report_ready(init.as_ref());
            serve(channel);
        }
        Err(failure) => failure.report(),
    }
}

/// The helper is confined and its configuration names no program.
struct ReadyToServe {
    channel: OwnedFd,
    init: Option<OwnedFd>,
}

/// A step that failed.
struct Failure {
    step: Step,
    path: Option<PathBuf>,
    error: io::Error,
}

impl Failure {
    fn new(step: Step, error: impl Into<io::Error>) -> Self {
        Self {
            step,
            path: None,
            error: error.into(),
        }
    }

    fn at(path: Option<PathBuf>, step: Step, error: impl Into<io::Error>) -> Self {
        Self {
            path,
            ..Self::new(step, error)
        }
    }

    /// Maps an error to a failure of `step`.
    fn of<E: Into<io::Error>>(step: Step) -> impl FnOnce(E) -> Self {
        move |error| Self::new(step, error)
    }

    /// Sends the step and errno over the channel, and writes the path to stderr.
    fn report(&self) {
        if let Some(path) = &self.path {
            let _ = writeln!(io::stderr(), "{}", path.display());
        }
        let errno = self.error.raw_os_error().unwrap_or(libc::EIO);
        let report = Report::Failed(self.step, errno);
        channel::send(inherited(CHANNEL_FD), report, None);
    }
}

fn report_ready(init: Option<&OwnedFd>) {
    channel::send(inherited(CHANNEL_FD), Report::Ready, init.map(AsFd::as_fd));
}

/// Opens a pidfd of process 1 of the sandbox, which is the helper's parent. The server waits for its
/// end. Returns none without namespaces or if the kernel refuses.
fn open_init(level: Level) -> Option<OwnedFd> {
    if level != Level::Namespaces || rustix::process::getppid() != Some(Pid::INIT) {
        return None;
    }
    rustix::process::pidfd_open(Pid::INIT, PidfdFlags::empty()).ok()
}

fn confine_and_execute() -> Result<ReadyToServe, Failure> {
    let config = recv_config().map_err(Failure::of(Step::Config))?;
    // Before the seccomp filter is installed.
    let init = open_init(config.level);
    confine(&config)?;
    sys::reset_signal_handlers();
    sys::unblock_signals();
    if config.argv.is_empty() {
        let channel = inherited(CHANNEL_FD).try_clone_to_owned();
        let channel = channel.map_err(Failure::of(Step::Execute))?;
        return Ok(ReadyToServe { channel, init });
    }
    report_ready(init.as_ref());
    Err(Failure::new(Step::Execute, execute(&config)))
}

fn recv_config() -> io::Result<HelperConfig> {
    let file = channel::recv_config(inherited(CHANNEL_FD))?;
    close_inherited_on_exec()?;
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    HelperConfig::decode(&bytes).ok_or_else(|| Errno::PROTO.into())
}

/// Marks all descriptors from 3 on as close-on-exec, also ones we don't know of. Kernels before 5.11
/// have no such call; there, the descriptors that the server passed are marked.
fn close_inherited_on_exec() -> io::Result<()> {
    if sys::close_inherited_on_exec().is_err() {
        rustix::io::fcntl_setfd(inherited(CHANNEL_FD), FdFlags::CLOEXEC)?;
        // Bubblewrap closed its arguments; without bubblewrap only the channel is open.
        let _ = rustix::io::fcntl_setfd(inherited(SELF_FD), FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Moves the program's streams to descriptors 0, 1 and 2.
///
/// A null device is opened again inside the sandbox: the inherited one is on a mount of the host,
/// where its owner could change its mode.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn take_streams() -> Result<(), Errno> {
    for number in 0..3 {
        // SAFETY: the server passes the program's streams from `STDIN_FD` on, nothing else in the
        // helper uses them, and this runs once. If nothing is open there, every use fails with
        // EBADF.
        let mut stream = unsafe { sys::take_fd(STDIN_FD + number) };
        if rustix::fs::fstat(&stream)?.st_rdev == rustix::fs::makedev(1, 3) {
            let flags = rustix::fs::fcntl_getfl(&stream)? & OFlags::ACCMODE;
            stream = rustix::fs::open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty())?;
        }
        sys::duplicate_to(&stream, number)?;
    }
    Ok(())
}

fn confine(config: &HelperConfig) -> Result<(), Failure> {
    if let Some(setup) = &config.mount_setup {
        let proc = mount_setup::apply(&setup.mounts)
            .map_err(|error| Failure::at(error.path, Step::Mounts, error.errno))?;
        capabilities::enter_user_namespace(&proc, setup.user, setup.group)
            .map_err(Failure::of(Step::Privileges))?;
    }
    capabilities::drop_all().map_err(Failure::of(Step::Privileges))?;
    for mount in &config.expected_mounts {
        mount.check().map_err(|error| {
            let path = Some(mount.path.clone());
            Failure::at(path, Step::MountCheck, error)
        })?;
    }
    if config.level == Level::Namespaces {
        take_streams().map_err(Failure::of(Step::Config))?;
    }
    rustix::process::chdir(&config.cwd).map_err(Failure::of(Step::WorkingDirectory))?;
    let has_landlock =
        landlock::restrict(&config.grants, config.level).map_err(Failure::of(Step::Landlock))?;
    if !has_landlock && config.level == Level::Landlock {
        return Err(Failure::new(Step::Landlock, Errno::NOSYS));
    }
    let filter = seccomp::filter(config.network, config.level);
    sys::set_filter(&filter).map_err(Failure::of(Step::Seccomp))
}

/// Tries the candidates in order, as `execvp` does, and returns the most significant error.
fn execute(config: &HelperConfig) -> io::Error {
    let (argv, env) = (strings(&config.argv), strings(&config.env));
    let mut denied = None;
    let mut last = io::Error::from(Errno::NOENT);
    for candidate in strings(&config.candidates) {
        last = sys::execute(candidate, &argv, &env);
        match last.raw_os_error() {
            Some(libc::EACCES) => denied = Some(last),
            Some(libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT) => {
                continue;
            }
            _ => return last,
        }
        last = Errno::NOENT.into();
    }
    denied.unwrap_or(last)
}

/// Splits a sequence of NUL-terminated strings.
fn strings(bytes: &[u8]) -> Vec<&CStr> {
    bytes
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|string| CStr::from_bytes_with_nul(string).ok())
        .collect()
}
