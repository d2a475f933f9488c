//! The helper: our own binary, executed inside the sandbox before the program.
//!
//! Bubblewrap creates the namespaces and executes the helper in them. The helper receives its
//! [`HelperConfig`] over its [`channel`], mounts what the plan grants ([`mount_setup`]), drops its
//! capabilities, verifies the mounts, restricts itself with Landlock and seccomp, and executes
//! the program ([`mod@run`]). At [`Level::Landlock`](crate::Level::Landlock) there is no bubblewrap
//! around it. If the configuration names no program, the helper keeps its channel and serves file
//! operations.
//!
//! # Descriptors
//!
//! | number | content |
//! |---|---|
//! | 3 | the helper's end of the channel; the first message carries a memfd with the configuration |
//! | 4 | this binary, for bubblewrap to execute where its path may not exist |
//! | 5 | a memfd with bubblewrap's arguments, which may exceed the limits of a command line |
//! | from 6 | the dynamic loader and the shared libraries of this binary, if bubblewrap makes the mounts and they hide one of them |
//! | then | the descriptors that are passed to the program |
//! | then | the program's stdin, stdout and stderr |
//!
//! If the helper makes the mounts, its libraries are mapped before. If bubblewrap makes them, it executes
//! the loader from its descriptor, which loads the libraries and this binary from theirs. So the helper
//! needs nothing of the plan, and nothing is shown for its sake: bubblewrap's first process closes these
//! descriptors, and the helper does as soon as it runs.
//!
//! The program's streams are not at 0, 1 and 2 because bubblewrap's first process lives as long as
//! anything in the sandbox and would keep them open. Descriptors from 3 on close on exec, but for those
//! that are passed to the program, and the program's environment is part of the configuration, so the
//! program inherits nothing of the helper.

mod channel;
mod config;
mod listeners;
mod mount_setup;
mod run;

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use outpost_process::MAX_PASSED_FDS;

use super::placeholder;
use crate::planning::OwnPath;

pub use channel::Step;
pub(super) use channel::{
    HelperChannel, MAX_FDS, ReceivedReport, Report, encode, send_fds, set_recv_timeout, socket_pair,
};
pub use config::Program;
pub(super) use config::{Grant, HelperConfig};

/// The first argument of the helper.
const RUN: &str = "run";
/// The first argument of a watcher, which removes placeholders after the server's end.
pub(super) const WATCH: &str = "watch";

/// The helper's end of its channel.
pub(super) const CHANNEL_FD: i32 = 3;
const SELF_FD: i32 = 4;
const BWRAP_ARGS_FD: i32 = 5;
/// The dynamic loader, followed by the libraries, if they are passed.
const LIBRARIES_FD: i32 = 6;
/// The first of the descriptors that a program was passed, in the program. All that the helper inherits
/// have lower numbers.
pub const PASSED_FD: i32 = 3 + MAX_PASSED_FDS as i32 + 3;
/// The program's stdin if neither libraries nor descriptors of the program are passed.
pub(super) const STDIN_FD: i32 = LIBRARIES_FD;

/// Runs the helper. The program of a [`HelperCommand`] calls this with the arguments that follow
/// [`HelperCommand::args`], and must not have started a thread.
///
/// Returns only when setup failed, or when the configuration names no program and `serve` has
/// returned. `serve` gets the helper's end of the channel and must return when the other end
/// closes: a probe of the host ends its helper that way, and kills it only after a timeout.
#[must_use]
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    serve: impl FnOnce(OwnedFd),
) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    if arguments == [RUN] {
        run::run(serve);
    } else if arguments == [WATCH] {
        placeholder::run_watcher();
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

/// A command whose program calls [`run_helper`](crate::run_helper) with the arguments that follow
/// [`args`](Self::args), before it starts a second thread.
///
/// A server uses its own binary as `/proc/self/exe`, which still names the running version after an
/// upgrade replaced the file.
#[derive(Clone, Debug, Default)]
pub struct HelperCommand {
    /// The path of the program. `PATH` is not searched.
    pub program: PathBuf,
    /// Leading arguments. They are text because bubblewrap passes them on.
    pub args: Vec<String>,
    /// Paths of the server that no sandboxed process may change, whatever its policy grants. The
    /// helper's program need not be listed.
    pub own_paths: Vec<OwnPath>,
    /// The directory with the record of what was ever granted for writing, which all sandboxes of a user
    /// share. It is created if necessary, and no sandboxed process sees it. Without one, the record is
    /// in memory and ends with the sandbox.
    pub grant_record: Option<PathBuf>,
    /// The soft and hard limit on open files of sandboxed programs; `None` to inherit the server's.
    pub open_files: Option<(u64, u64)>,
}

impl HelperCommand {
    /// Returns the command line of the helper, starting with our own `argv[0]`, which process lists
    /// show.
    pub(super) fn argv(&self) -> Vec<OsString> {
        self.argv_for(RUN)
    }

    /// Returns the command line with another first argument than the helper's.
    pub(super) fn argv_for(&self, first: &str) -> Vec<OsString> {
        let name = std::env::args_os().next();
        let name = name.unwrap_or_else(|| self.program.clone().into_os_string());
        self.append_to([name], first)
    }

    /// Returns the command line of bubblewrap. It reads its options from [`BWRAP_ARGS_FD`] and
    /// executes the helper from [`SELF_FD`], by means of the loader if `libraries` are passed.
    pub(super) fn bubblewrap_argv(&self, libraries: i32) -> Vec<OsString> {
        let descriptor = |number: i32| format!("/proc/self/fd/{number}");
        let mut start = ["bwrap", "--args", &BWRAP_ARGS_FD.to_string(), "--"]
            .map(str::to_owned)
            .to_vec();
        if libraries > 0 {
            // A preloaded library satisfies the needs of others by its name inside (`DT_SONAME`).
            let others = LIBRARIES_FD + 1..LIBRARIES_FD + libraries;
            let others: Vec<_> = others.map(descriptor).collect();
            start.extend([descriptor(LIBRARIES_FD), "--preload".to_owned()]);
            start.push(others.join(":"));
        }
        start.push(descriptor(SELF_FD));
        self.append_to(start.into_iter().map(OsString::from), RUN)
    }

    fn append_to(&self, start: impl IntoIterator<Item = OsString>, first: &str) -> Vec<OsString> {
        let args = self.args.iter().map(OsString::from);
        start
            .into_iter()
            .chain(args)
            .chain([first.into()])
            .collect()
    }

    /// Returns the environment of the helper and of bubblewrap: only the variables that the dynamic
    /// loader may need.
    pub(super) fn environment() -> Vec<(OsString, OsString)> {
        let is_for_loader = |name: &OsString| name.as_encoded_bytes().starts_with(b"LD_");
        std::env::vars_os()
            .filter(|(name, _)| is_for_loader(name))
            .collect()
    }
}

/// Borrows one of the descriptors in the table above.
#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn inherited(number: i32) -> BorrowedFd<'static> {
    // SAFETY: nothing in the helper closes descriptor `number` while it is borrowed. If the helper
    // was started by hand and nothing is open there, every use fails with EBADF.
    unsafe { BorrowedFd::borrow_raw(number) }
}
