//! The stage inside: puts up the last walls and becomes the program, or stays.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags};

use super::{LINE, SELF, STREAMS, inherited, powers, scene};
use crate::Level;
use crate::linux::orders::Orders;
use crate::linux::report::{Report, Step};
use crate::linux::sys;
use crate::linux::{filter, landlock, line};

/// Returns if it fails, which it has said on its line then, or if it has done what it stayed for.
pub(super) fn run(serve: impl FnOnce(OwnedFd)) {
    finish(become_the_program(hear()), serve);
}

/// How far this stage has come without becoming another program.
enum Outcome {
    /// The walls are up, and it stays. With its line, and who was the first inside.
    Stays(OwnedFd, Option<OwnedFd>),
    Failed(Failure),
}

/// What could not be done.
struct Failure {
    step: Step,
    /// Where, if it was about a path.
    path: Option<PathBuf>,
    error: io::Error,
}

impl Failure {
    fn new(step: Step, error: impl Into<io::Error>) -> Self {
        let (path, error) = (None, error.into());
        Self { step, path, error }
    }

    fn at(path: &Path, step: Step, error: impl Into<io::Error>) -> Self {
        let path = Some(path.to_owned());
        Self {
            path,
            ..Self::new(step, error)
        }
    }
}

fn finish(outcome: Outcome, serve: impl FnOnce(OwnedFd)) {
    match outcome {
        Outcome::Stays(line, first) => {
            ready(first.as_ref());
            serve(line);
        }
        Outcome::Failed(failure) => tell(&failure),
    }
}

fn tell(failure: &Failure) {
    if let Some(path) = &failure.path {
        // Nobody else writes there yet.
        let _ = writeln!(io::stderr(), "{}", path.display());
    }
    let errno = failure.error.raw_os_error().unwrap_or(libc::EIO);
    let report = Report::Failed(failure.step, errno);
    line::tell(inherited(LINE), report, None);
}

fn ready(first: Option<&OwnedFd>) {
    line::tell(inherited(LINE), Report::Ready, first.map(AsFd::as_fd));
}

/// The first process in our namespaces, whose child this is. Who is told of it may wait for its end.
/// Without namespaces there is none; where it can't be named, who waits makes do without.
fn first_inside(level: Level) -> Option<OwnedFd> {
    let first = Pid::INIT;
    let is_ours = level == Level::Namespaces && rustix::process::getppid() == Some(first);
    let flags = PidfdFlags::empty();
    is_ours.then(|| rustix::process::pidfd_open(first, flags).ok())?
}

fn become_the_program(orders: io::Result<Orders>) -> Outcome {
    let orders = match orders {
        Ok(orders) => orders,
        Err(error) => return Outcome::Failed(Failure::new(Step::Orders, error)),
    };
    // Nobody asks for it behind the walls.
    let first = first_inside(orders.level);
    if let Err(failure) = confine(&orders) {
        return Outcome::Failed(failure);
    }
    sys::heed_signals();
    sys::unblock_signals();
    if orders.argv.is_empty() {
        return match inherited(LINE).try_clone_to_owned() {
            Ok(line) => Outcome::Stays(line, first),
            Err(error) => Outcome::Failed(Failure::new(Step::Execute, error)),
        };
    }
    ready(first.as_ref());
    Outcome::Failed(Failure::new(Step::Execute, execute(&orders)))
}

fn hear() -> io::Result<Orders> {
    let file = line::take_file(inherited(LINE))?;
    close_others_on_exec()?;
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    Orders::decode(&bytes).ok_or_else(|| Errno::PROTO.into())
}

/// Whoever started us may have left more open than we know of. Kernels before 5.11 don't do it in
/// one call; then there is what we know of. Bubblewrap has closed its arguments, and without it
/// there is nothing but the line.
fn close_others_on_exec() -> io::Result<()> {
    if sys::close_others_on_exec().is_err() {
        rustix::io::fcntl_setfd(inherited(LINE), FdFlags::CLOEXEC)?;
        let _ = rustix::io::fcntl_setfd(inherited(SELF), FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Takes the program's streams for our own, and leaves no other copy of them. The device that nothing
/// comes out of is the host's, on a mount where its owner could change its mode, so it becomes the one
/// inside.
fn take_streams() -> Result<(), Errno> {
    for number in 0..3 {
        let mut stream = sys::inherit(STREAMS + number);
        if rustix::fs::fstat(&stream)?.st_rdev == rustix::fs::makedev(1, 3) {
            let flags = rustix::fs::fcntl_getfl(&stream)? & OFlags::ACCMODE;
            stream = rustix::fs::open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty())?;
        }
        sys::duplicate_to(&stream, number)?;
    }
    Ok(())
}

fn confine(orders: &Orders) -> Result<(), Failure> {
    let failed = |step| move |errno: Errno| Failure::new(step, errno);
    if let Some(scene) = &orders.scene {
        let proc = scene::set(&scene.mounts).map_err(|unset| match unset.path {
            Some(path) => Failure::at(&path, Step::Mounts, unset.errno),
            None => Failure::new(Step::Mounts, unset.errno),
        })?;
        powers::leave(&proc, scene.user, scene.group).map_err(failed(Step::Privileges))?;
    }
    powers::give_up().map_err(failed(Step::Privileges))?;
    for place in &orders.places {
        let checked = place.check();
        checked.map_err(|error| Failure::at(&place.path, Step::Places, error))?;
    }
    if orders.level == Level::Namespaces {
        take_streams().map_err(failed(Step::Orders))?;
    }
    rustix::process::chdir(&orders.cwd).map_err(failed(Step::Directory))?;
    let walled = landlock::confine(&orders.grants, orders.level);
    let walled = walled.map_err(|error| Failure::new(Step::Landlock, error))?;
    if !walled && orders.level == Level::Landlock {
        return Err(Failure::new(Step::Landlock, Errno::NOSYS));
    }
    let filter = filter::filter(orders.network, orders.level);
    let filtered = sys::set_filter(&filter);
    filtered.map_err(|error| Failure::new(Step::Seccomp, error))
}

/// Tries the candidates as `execvp` does, and returns the error that says most.
fn execute(orders: &Orders) -> io::Error {
    let (argv, env) = (strings(&orders.argv), strings(&orders.env));
    let mut denied = None;
    let mut last = io::Error::from(Errno::NOENT);
    for candidate in strings(&orders.candidates) {
        last = sys::execute(candidate, &argv, &env);
        match last.raw_os_error() {
            Some(libc::EACCES) => denied = Some(last),
            // Not here, or nowhere one could look.
            Some(libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT) => {
                continue;
            }
            _ => return last,
        }
        last = Errno::NOENT.into();
    }
    denied.unwrap_or(last)
}

fn strings(run: &[u8]) -> Vec<&CStr> {
    let each = run.split_inclusive(|byte| *byte == 0);
    each.filter_map(|string| CStr::from_bytes_with_nul(string).ok())
        .collect()
}
