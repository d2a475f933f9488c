//! The program between the server and a confined one: our own binary again, three times over.
//!
//! The **outer** stage stands where the program is expected, hears over its line what to do, and
//! becomes bubblewrap. That sets up the namespaces and executes the **inner** stage in them, which
//! puts up the last walls and becomes the program. The **probe** tries all of that with a plan that
//! shows everything and forbids nothing in particular. Where the operator has chosen to do without
//! namespaces, a stage **alone** is both: it puts up what walls there are and becomes the program.
//!
//! Where there is no program to become, the last stage stays what it is and keeps its line: it does
//! for the server, behind the walls, what the server would do itself.
//!
//! The line is descriptor 3. With the first message on it come two files without names: bubblewrap's
//! arguments, and the inner stage's [`Orders`](super::orders::Orders). Both may be longer than any
//! argument. What the stages leave behind is gone when the program runs: their descriptors close
//! with it, and its environment is in the orders.

mod inner;
mod outer;
mod probe;

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};

pub(super) use probe::REPORTED;

/// What it is that a stage is to do: the first argument.
pub(super) const OUTER: &str = "outer";
pub(super) const INNER: &str = "inner";
pub(super) const ALONE: &str = "alone";
pub(super) const PROBE: &str = "probe";
pub(super) const PROBED: &str = "probed";

/// Where the stages find things. The line is behind the three streams.
const LINE: i32 = 3;
const ARGUMENTS: i32 = 4;
const ORDERS: i32 = 5;
const SELF: i32 = 6;

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
        [OUTER, bubblewrap, name @ ..] => outer::run(bubblewrap, name),
        [INNER] => inner::run(serve),
        [ALONE, ..] => inner::run_alone(serve),
        [PROBE, bubblewrap, name @ ..] => probe::run(bubblewrap, name),
        [PROBED] => probe::report(),
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

/// This very program, also inside, where its path may lead nowhere.
fn open_self() -> Result<OwnedFd, Errno> {
    rustix::fs::open(
        "/proc/self/exe",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )
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
