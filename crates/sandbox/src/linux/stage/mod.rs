//! The program between bubblewrap and a confined one: our own binary again.
//!
//! Bubblewrap sets up the namespaces and executes the **inner** stage in them, which hears over its
//! line what to do, mounts what is granted, gives up the powers that this takes, puts up the last walls
//! and becomes the program. Where the operator has chosen to
//! do without namespaces, there is no bubblewrap around it. The **probe** tries all of that with a
//! plan that shows everything and forbids nothing in particular.
//!
//! Where there is no program to become, the stage stays what it is and keeps its line: it does for
//! the server, behind the walls, what the server would do itself.
//!
//! The line is descriptor 3. With the first message on it comes a file without a name, the
//! [`Orders`](super::orders::Orders), which may be longer than any argument; bubblewrap reads its own
//! arguments from another. The program's three streams come last: bubblewrap's own first process stays
//! for as long as anything lives inside, and would hold them. What a stage leaves behind is gone when
//! the program runs: its descriptors close with it, and the program's environment is in the orders.

mod inner;
mod powers;
mod probe;
mod scene;
mod trees;

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};

pub(super) use probe::{FORBIDDEN, Probe, REPORTED};

use super::StageCommand;

/// What it is that a stage is to do: the first argument.
pub(super) const INNER: &str = "inner";
pub(super) const PROBE: &str = "probe";
pub(super) const PROBED: &str = "probed";

/// Where the line is: behind the three streams.
const LINE: i32 = 3;
/// This very program, for bubblewrap to execute inside, where its path may lead nowhere.
pub(super) const SELF: i32 = 4;
/// What bubblewrap is told.
pub(super) const ARGUMENTS: i32 = 5;
/// Where the program's own streams begin, if there is a bubblewrap.
const STREAMS: i32 = 6;

/// What the program of a [`StageCommand`](super::StageCommand) has to do, and all it has to do, with
/// the arguments behind those it is started with. It must not have started a thread.
///
/// Returns only when something has failed, or when it was to stay and `serve` has done all there was
/// to do on its line.
#[must_use]
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    serve: impl FnOnce(OwnedFd),
) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        [INNER] => inner::run(serve),
        [PROBE, how, bubblewrap, name @ ..] => probe::run(how, bubblewrap, name),
        [PROBED, how] => probe::report(how),
        _ => {}
    }
    ExitCode::FAILURE
}

/// Puts a descriptor where the next program finds it.
fn put(descriptor: OwnedFd, number: i32) -> Result<(), Errno> {
    if descriptor.as_raw_fd() == number {
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        // It stays open for whoever comes next.
        std::mem::forget(descriptor);
        return Ok(());
    }
    super::sys::duplicate_to(&descriptor, number)?;
    Ok(())
}

/// What bubblewrap is started with to carry a stage, its name first. It finds the stage and its own
/// arguments where they are passed.
pub(super) fn carried(command: &StageCommand) -> Vec<OsString> {
    let own = format!("/proc/self/fd/{SELF}");
    let arguments = ARGUMENTS.to_string();
    let words = ["bwrap", "--args", &arguments, "--", &own].map(OsString::from);
    let name = command.args.iter().map(OsString::from);
    words
        .into_iter()
        .chain(name)
        .chain([INNER.into()])
        .collect()
}

/// A program, for nothing but to be executed.
pub(super) fn open(program: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Something that the stage before has left open for us.
fn inherited(number: i32) -> BorrowedFd<'static> {
    super::sys::borrow(number)
}

fn c_string(text: impl Into<OsString>) -> CString {
    // None of ours has a NUL byte; one that had would end there.
    let mut bytes = text.into().into_vec();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// The environment as it is.
fn environment() -> Vec<CString> {
    let join = |(name, value): (OsString, OsString)| {
        let mut text = name;
        text.push("=");
        text.push(value);
        c_string(text)
    };
    std::env::vars_os().map(join).collect()
}

fn borrowed(strings: &[CString]) -> Vec<&CStr> {
    strings.iter().map(CString::as_c_str).collect()
}
