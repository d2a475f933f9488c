//! The stage inside: puts up the last walls and becomes the program, or stays.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

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
    Failed(Step, io::Error),
}

fn finish(outcome: Outcome, serve: impl FnOnce(OwnedFd)) {
    match outcome {
        Outcome::Stays(line, first) => {
            ready(first.as_ref());
            serve(line);
        }
        Outcome::Failed(step, error) => tell(step, &error),
    }
}

fn tell(step: Step, error: &io::Error) {
    let line = inherited(LINE);
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    line::tell(line, Report::Failed(step, errno), None);
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
        Err(error) => return Outcome::Failed(Step::Orders, error),
    };
    if orders.level == Level::Namespaces
        && let Err(errno) = take_streams()
    {
        return Outcome::Failed(Step::Orders, errno.into());
    }
    // Nobody asks for it behind the walls.
    let first = first_inside(orders.level);
    if let Err((step, error)) = confine(&orders) {
        return Outcome::Failed(step, error);
    }
    sys::heed_signals();
    sys::unblock_signals();
    if orders.argv.is_empty() {
        return match inherited(LINE).try_clone_to_owned() {
            Ok(line) => Outcome::Stays(line, first),
            Err(error) => Outcome::Failed(Step::Execute, error),
        };
    }
    ready(first.as_ref());
    Outcome::Failed(Step::Execute, execute(&orders))
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

/// Takes the program's streams for our own, and leaves no other copy of them.
fn take_streams() -> Result<(), Errno> {
    for number in 0..3 {
        let stream = sys::inherit(STREAMS + number);
        sys::duplicate_to(&stream, number)?;
    }
    Ok(())
}

fn confine(orders: &Orders) -> Result<(), (Step, io::Error)> {
    if let Some(scene) = &orders.scene {
        let proc = scene::set(&scene.mounts).map_err(|errno| (Step::Mounts, errno.into()))?;
        let given_up = powers::give_up(&proc, scene.user, scene.group);
        given_up.map_err(|errno| (Step::Privileges, errno.into()))?;
    }
    for place in &orders.places {
        place.check().map_err(|error| (Step::Places, error))?;
    }
    rustix::process::chdir(&orders.cwd).map_err(|errno| (Step::Directory, errno.into()))?;
    let no_more = rustix::thread::set_no_new_privs(true);
    no_more.map_err(|errno| (Step::Privileges, errno.into()))?;
    let walled = landlock::confine(&orders.grants, orders.level);
    let walled = walled.map_err(|error| (Step::Landlock, error))?;
    if !walled && orders.level == Level::Landlock {
        return Err((Step::Landlock, Errno::NOSYS.into()));
    }
    let filter = filter::filter(orders.network, orders.level);
    sys::set_filter(&filter).map_err(|error| (Step::Seccomp, error))
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
