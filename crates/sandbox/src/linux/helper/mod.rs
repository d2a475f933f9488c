//! The helper: our own binary, executed inside the sandbox before the program.
//!
//! Bubblewrap creates the namespaces and executes the helper in them. The helper receives its
//! [`HelperConfig`] over its [`channel`], mounts what the plan grants ([`mount_setup`]), drops its
//! [`capabilities`], verifies the mounts, restricts itself with Landlock and seccomp, and executes
//! the program. At [`Level::Landlock`](crate::Level::Landlock) there is no bubblewrap around it. If
//! the configuration names no program, the helper keeps its channel and serves file operations.
//!
//! The [`probe`] does the same with a plan that shows everything read-only, to find out what this
//! host supports.
//!
//! # Descriptors
//!
//! | number | content |
//! |---|---|
//! | 3 | the helper's end of the channel; the first message carries a memfd with the configuration |
//! | 4 | this binary, for bubblewrap to execute where its path may not exist |
//! | 5 | a memfd with bubblewrap's arguments, which may exceed the limits of a command line |
//! | 6, 7, 8 | the program's stdin, stdout and stderr |
//!
//! The program's streams are not at 0, 1 and 2 because bubblewrap's first process lives as long as
//! anything in the sandbox and would keep them open. Descriptors from 3 on close on exec, and the
//! program's environment is part of the configuration, so the program inherits nothing of the
//! helper.

mod capabilities;
mod channel;
mod command;
mod config;
mod encoding;
mod mount_fd;
mod mount_setup;
mod probe;
mod report;
mod run;
mod stderr;

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};

pub(super) use channel::{HelperChannel, HelperMessage};
pub use command::HelperCommand;
pub(super) use config::{Grant, HelperConfig, MountSetup};
pub(super) use probe::{FORBIDDEN, Probe, REPORTED};
pub(super) use report::Report;
pub use report::Step;
pub(super) use stderr::HelperStderr;

/// The modes of the helper, which are its first argument.
pub(super) const RUN: &str = "run";
pub(super) const PROBE: &str = "probe";
pub(super) const PROBE_INSIDE: &str = "probe-inside";

const CHANNEL_FD: i32 = 3;
const SELF_FD: i32 = 4;
const BWRAP_ARGS_FD: i32 = 5;
const STDIN_FD: i32 = 6;

/// Runs the helper. The program of a [`HelperCommand`] calls this with the arguments that follow
/// [`HelperCommand::args`], and must not have started a thread.
///
/// Returns only when setup failed, or when the configuration names no program and `serve` has
/// returned. `serve` gets the helper's end of the channel.
#[must_use]
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    serve: impl FnOnce(OwnedFd),
) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let arguments: Vec<_> = arguments.iter().filter_map(|one| one.to_str()).collect();
    match arguments.as_slice() {
        [RUN] => run::run(serve),
        [PROBE, kind, bubblewrap, helper_args @ ..] => probe::run(kind, bubblewrap, helper_args),
        [PROBE_INSIDE, kind] => probe::report(kind),
        _ => {}
    }
    ExitCode::FAILURE
}

/// Puts a descriptor at `number` for the next program.
fn place_at(descriptor: OwnedFd, number: i32) -> Result<(), Errno> {
    if descriptor.as_raw_fd() == number {
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        // It has to stay open.
        std::mem::forget(descriptor);
        return Ok(());
    }
    super::sys::duplicate_to(&descriptor, number)
}

/// Returns bubblewrap's command line. It reads its options from [`BWRAP_ARGS_FD`] and executes the
/// helper from [`SELF_FD`].
pub(super) fn bubblewrap_argv(command: &HelperCommand) -> Vec<OsString> {
    let helper = format!("/proc/self/fd/{SELF_FD}");
    let arguments = BWRAP_ARGS_FD.to_string();
    let bwrap = ["bwrap", "--args", &arguments, "--", &helper].map(OsString::from);
    let helper_args = command.args.iter().map(OsString::from);
    bwrap
        .into_iter()
        .chain(helper_args)
        .chain([RUN.into()])
        .collect()
}

/// Opens a program with `O_PATH`, only to execute it.
pub(super) fn open_program(program: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Borrows one of the descriptors in the table above.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn inherited(number: i32) -> BorrowedFd<'static> {
    // SAFETY: nothing in the helper closes descriptor `number` while it is borrowed. If the helper
    // was started by hand and nothing is open there, every use fails with EBADF.
    unsafe { super::sys::borrow_fd(number) }
}

fn c_string(text: impl Into<OsString>) -> CString {
    let mut bytes = text.into().into_vec();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

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
