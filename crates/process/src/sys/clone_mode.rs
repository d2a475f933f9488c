//! How children are cloned on this host, and how they close descriptors.
#![expect(unsafe_code, reason = "a system call that the C library may lack")]

use std::ffi::c_uint;

use super::signal_reset::SignalReset;

/// How children are cloned on this host.
#[derive(Copy, Clone, Debug)]
pub(crate) struct CloneMode {
    /// `clone3` is unavailable, as in old containers.
    pub(crate) legacy_clone: bool,
    pub(crate) close_mode: CloseMode,
    pub(crate) signal_reset: SignalReset,
    /// Children get a higher out-of-memory score than this process.
    pub(crate) raise_oom_score: bool,
}

/// How a child closes the descriptors that are not for it. Those the server opened are close-on-exec
/// anyway; those it inherited may not be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// The child shares the descriptor table, and unshares a copy of the part that it needs.
    Unshare,
    /// The child has a copy of the whole table, and closes a range.
    Range,
    /// The child has a copy of the whole table, and closes single descriptors, for kernels without
    /// `close_range`.
    Each,
}

impl CloseMode {
    /// Picks the method for a child with a copy of the whole table.
    pub(crate) fn of_copied_table() -> Self {
        // SAFETY: no pointers; no descriptor has this number. Fails if the call is unavailable, in this
        // kernel or under its seccomp filters.
        match unsafe { libc::syscall(libc::SYS_close_range, c_uint::MAX, c_uint::MAX, 0) } {
            0 => CloseMode::Range,
            _ => CloseMode::Each,
        }
    }
}
