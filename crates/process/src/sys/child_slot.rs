//! Identifies a child while the thread that clones it is suspended.
#![expect(unsafe_code, reason = "borrows a descriptor that another thread owns")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::child_setup::Stage;

/// The child that a thread is cloning. The thread is suspended until the child has called `execve` or
/// exited; meanwhile other threads may kill the child and see how far it is.
#[derive(Debug)]
pub(crate) struct ChildSlot {
    /// The pidfd, or -1. The kernel writes it before the child runs.
    pidfd: AtomicI32,
    /// Locked while the pidfd is used by another thread and while it is taken.
    taking: Mutex<()>,
    /// A [`Stage`] as a number, written by the child before steps that may block.
    stage: AtomicI32,
}

impl ChildSlot {
    pub(crate) fn new() -> Self {
        Self {
            pidfd: AtomicI32::new(-1),
            taking: Mutex::new(()),
            stage: AtomicI32::new(0),
        }
    }

    /// Where the kernel stores the pidfd.
    pub(super) fn location(&self) -> *mut i32 {
        self.pidfd.as_ptr()
    }

    /// Takes the pidfd of a child that was cloned.
    ///
    /// # Safety
    /// The kernel must have stored a new descriptor.
    pub(super) unsafe fn take(&self) -> OwnedFd {
        let _taking = self.taking.lock();
        let fd = self.pidfd.swap(-1, Ordering::AcqRel);
        // SAFETY: the caller guarantees that it is open, and it is returned only once.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// Records the step that the child is about to do. Makes no system call and allocates nothing.
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.store(stage as i32, Ordering::Release);
    }

    /// The step that the child is in, if it may block.
    pub(crate) fn stage(&self) -> Option<Stage> {
        Stage::from_number(self.stage.load(Ordering::Acquire))
    }

    /// Kills the child if it is being cloned.
    pub(crate) fn kill(&self) {
        let _taking = self.taking.lock();
        let fd = self.pidfd.load(Ordering::Acquire);
        if fd >= 0 {
            // SAFETY: it is open, because its owner closes it only after it was taken.
            let pidfd = unsafe { BorrowedFd::borrow_raw(fd) };
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}
