//! Confines the helper itself and then executes the program, or serves file operations.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::channel::{self, Step};
use super::config::{HelperConfig, Program};
use super::{CHANNEL_FD, LIBRARIES_FD, PASSED_FD, SELF_FD, inherited, listeners, mount_setup};
use crate::linux::landlock;
use crate::linux::seccomp::{self, Sockets};
use crate::linux::sys;
use crate::{Level, Network};

/// Returns if a step failed, after reporting it, or when `serve` has returned.
pub(super) fn run(serve: impl FnOnce(OwnedFd)) {
    match confine_and_execute() {
        Ok(channel) => serve(channel),
        Err(failure) => failure.report(),
    }
}

/// A step that failed.
struct Failure {
    step: Step,
    path: Option<PathBuf>,
    error: io::Error,
}

impl Failure {
    /// Maps an error to a failure of `step`.
    fn of<E: Into<io::Error>>(step: Step) -> impl FnOnce(E) -> Self {
        move |error| Self {
            step,
            path: None,
            error: error.into(),
        }
    }

    /// Sends the step and errno over the channel, and writes the path to stderr.
    fn report(&self) {
        if let Some(path) = &self.path {
            let _ = writeln!(io::stderr(), "{}", path.display());
        }
        let errno = self.error.raw_os_error().unwrap_or(libc::EIO);
        channel::send_failure(inherited(CHANNEL_FD), self.step, errno);
    }
}

/// Opens a pidfd of process 1 of the sandbox, which is the helper's parent. The server waits for its
/// end. Returns none without namespaces or if the kernel refuses.
fn open_init(level: Level) -> Option<OwnedFd> {
    if level != Level::Namespaces || rustix::process::getppid() != Some(Pid::INIT) {
        return None;
    }
    rustix::process::pidfd_open(Pid::INIT, PidfdFlags::empty()).ok()
}

/// Returns the channel if the helper is sandboxed and its configuration names no program.
fn confine_and_execute() -> Result<OwnedFd, Failure> {
    let config = recv_config().map_err(Failure::of(Step::Config))?;
    let passed = config.program.passed;
    let first = match config.level {
        Level::Namespaces => config.stdin - passed,
        Level::Landlock => CHANNEL_FD + 1,
    };
    take_passed(first, passed).map_err(Failure::of(Step::Streams))?;
    if config.level == Level::Namespaces {
        close_own_files(first);
    }
    // Before the seccomp filter is installed.
    let init = open_init(config.level);
    let listeners = listeners::listen(&config.listen).map_err(Failure::of(Step::Listen))?;
    let listener = confine(&config)?;
    sys::reset_signal_handlers();
    sys::unblock_signals();
    let channel = inherited(CHANNEL_FD);
    let owned = channel.try_clone_to_owned();
    let owned = owned.map_err(Failure::of(Step::Execute))?;
    let (init, listener) = (init.as_ref(), listener.as_ref());
    let sent = channel::send_ready(
        channel,
        init.map(AsFd::as_fd),
        listener.map(AsFd::as_fd),
        &listeners,
    );
    sent.map_err(Failure::of(Step::Listen))?;
    if config.program.argv.is_empty() {
        return Ok(owned);
    }
    // After the report, because the kernel refuses to send descriptors if more are in flight than this.
    let limited = config.rlimits.set();
    limited.map_err(Failure::of(Step::Privileges))?;
    Err(Failure::of(Step::Execute)(execute(&config.program)))
}

fn recv_config() -> io::Result<HelperConfig> {
    let file = channel::recv_config(inherited(CHANNEL_FD))?;
    close_inherited_on_exec()?;
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    channel::decode(&bytes)
}

/// Marks all descriptors from 3 on as close-on-exec, including unknown descriptors. Kernels before 5.11
/// have no such call; there, the descriptors that the server passed are marked.
fn close_inherited_on_exec() -> io::Result<()> {
    if sys::close_inherited_on_exec().is_err() {
        rustix::io::fcntl_setfd(inherited(CHANNEL_FD), FdFlags::CLOEXEC)?;
        // Bubblewrap closed its arguments; without bubblewrap only the channel is open.
        let _ = rustix::io::fcntl_setfd(inherited(SELF_FD), FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Moves the descriptors that are passed to the program to the numbers that the program expects.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn take_passed(first: i32, count: i32) -> Result<(), Errno> {
    for number in 0..count {
        // SAFETY: the server passes them at these numbers, nothing else in the helper uses them, and
        // this runs once. If nothing is open there, the duplication fails with EBADF.
        let passed = unsafe { OwnedFd::from_raw_fd(first + number) };
        // SAFETY: the helper has opened nothing yet, and inherits nothing at these numbers.
        unsafe { sys::duplicate_to(passed.as_raw_fd(), PASSED_FD + number) }?;
    }
    Ok(())
}

/// Closes this binary and its libraries up to `end`, which the sandbox may hide.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn close_own_files(end: i32) {
    for number in [SELF_FD].into_iter().chain(LIBRARIES_FD..end) {
        // SAFETY: bubblewrap and the loader passed them on, nothing in the helper uses them, and this
        // runs once, before the helper opens anything that stays open.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

/// Moves the program's streams to descriptors 0, 1 and 2.
///
/// A null device is opened again inside the sandbox: the inherited one is on a mount of the host,
/// where its owner could change its mode.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn take_streams(stdin: i32) -> Result<(), Errno> {
    for number in 0..3 {
        // SAFETY: the server passes the program's streams from `stdin` on, nothing else in the
        // helper uses them, and this runs once. If nothing is open there, every use fails with
        // EBADF.
        let mut stream = unsafe { OwnedFd::from_raw_fd(stdin + number) };
        if rustix::fs::fstat(&stream)?.st_rdev == rustix::fs::makedev(1, 3) {
            let flags = rustix::fs::fcntl_getfl(&stream)? & OFlags::ACCMODE;
            stream = rustix::fs::open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty())?;
        }
        // SAFETY: the helper's own streams are only written to when a step fails, and a message may
        // go to the program's stderr.
        unsafe { sys::duplicate_to(stream.as_raw_fd(), number) }?;
    }
    Ok(())
}

/// Returns the listener for system calls that a supervisor answers, if there is one.
fn confine(config: &HelperConfig) -> Result<Option<OwnedFd>, Failure> {
    if let Some((user, group)) = config.user_after_mounts {
        let proc = mount_setup::apply(&config.mounts).map_err(|error| Failure {
            path: error.path,
            ..Failure::of(Step::Mounts)(error.errno)
        })?;
        enter_user_namespace(&proc, user, group).map_err(Failure::of(Step::UserNamespace))?;
    }
    drop_capabilities().map_err(Failure::of(Step::Privileges))?;
    for mount in &config.mounts.mounts {
        mount.check().map_err(|error| Failure {
            path: Some(mount.path.clone()),
            ..Failure::of(Step::MountCheck)(error)
        })?;
    }
    if config.level == Level::Namespaces {
        take_streams(config.stdin).map_err(Failure::of(Step::Streams))?;
    }
    rustix::process::chdir(&config.program.cwd).map_err(Failure::of(Step::WorkingDirectory))?;
    let has_landlock =
        landlock::restrict(&config.grants, config.level).map_err(Failure::of(Step::Landlock))?;
    if !has_landlock && config.level == Level::Landlock {
        return Err(Failure::of(Step::Landlock)(Errno::NOSYS));
    }
    install_filter(config).map_err(Failure::of(Step::Seccomp))
}

/// Returns the listener if the filter has one. Without unix sockets if the kernel refuses it.
fn install_filter(config: &HelperConfig) -> Result<Option<OwnedFd>, Errno> {
    let sockets = match (config.network, config.level) {
        (Network::Enabled, _) => Sockets::Host,
        (Network::Restricted, Level::Landlock) => Sockets::Pairs,
        (Network::Restricted, Level::Namespaces) => Sockets::Namespaced,
    };
    if config.supervised && sockets == Sockets::Namespaced {
        let filter = seccomp::filter(Sockets::Supervised);
        if let Ok(listener) = sys::set_filter_with_listener(&filter) {
            return Ok(Some(listener));
        }
    }
    sys::set_filter(&seccomp::filter(sockets)).map(|()| None)
}

/// Moves to a nested user namespace as `user` and `group`. The outer namespace owns the mounts, so
/// they can't be changed from the nested one, and no further namespace can be created in it.
/// `proc` is a writable mount of `/proc`.
fn enter_user_namespace(proc: &OwnedFd, user: u32, group: u32) -> Result<(), Errno> {
    // Allows the namespace created next and no other.
    write_proc(proc, "sys/user/max_user_namespaces", "1")?;
    sys::unshare_user_namespace()?;
    write_proc(proc, "self/setgroups", "deny")?;
    write_proc(proc, "self/uid_map", &format!("{user} 0 1"))?;
    write_proc(proc, "self/gid_map", &format!("{group} 0 1"))
}

/// Clears all capability sets and sets `no_new_privs`. This also applies without namespaces, where
/// the capabilities of root would be valid on the host.
fn drop_capabilities() -> Result<(), Errno> {
    match sys::drop_bounding_set() {
        // Without CAP_SETPCAP there are no capabilities to drop.
        Err(Errno::PERM) => {}
        dropped => dropped?,
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)?;
    rustix::thread::set_no_new_privs(true)
}

fn write_proc(proc: &OwnedFd, name: &str, text: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, name, flags, Mode::empty())?;
    if rustix::io::write(&file, text.as_bytes())? == text.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}

/// Tries the candidates in order, as `execvp` does, and returns the most significant error.
fn execute(program: &Program) -> io::Error {
    let (argv, env) = (strings(&program.argv), strings(&program.env));
    let mut denied = None;
    let mut last = io::Error::from(Errno::NOENT);
    for candidate in strings(&program.candidates) {
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
fn strings(joined: &OsStr) -> Vec<&CStr> {
    joined
        .as_encoded_bytes()
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|string| CStr::from_bytes_with_nul(string).ok())
        .collect()
}
