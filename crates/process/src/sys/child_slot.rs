//! Identifies a child while the thread that clones it is suspended.
#![expect(unsafe_code, reason = "borrows a descriptor that another thread owns")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::child_setup::Stage;

/// The child that a thread is cloning. The thread is suspended until the child has called `execve` or
/// exited; meanwhile other threads may kill the child and see how far it is.
#[derive(Debug)]
pub(crate) struct ChildSlot {
    /// The pidfd, valid only if `running` is set. The kernel writes it before the child runs, and also
    /// if the clone fails afterwards; then the number is free, or in use for something else.
    pidfd: AtomicI32,
    /// Set by the child first of all, so never by a clone that fails.
    running: AtomicBool,
    /// The start is no longer wanted. Set before `running` is read, and read by the child after it has
    /// set `running`: either the child sees it, or the child is killed.
    abandoned: AtomicBool,
    /// Locked while the pidfd is used by another thread and while it is taken.
    taking: Mutex<()>,
    /// A [`Stage`] as a number, written by the child before steps that may block.
    stage: AtomicI32,
}

impl ChildSlot {
    pub(crate) fn new() -> Self {
        Self {
            pidfd: AtomicI32::new(-1),
            running: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
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
        self.running.store(false, Ordering::SeqCst);
        let fd = self.pidfd.swap(-1, Ordering::AcqRel);
        // SAFETY: the caller guarantees that it is open, and it is returned only once.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// Declares that the child runs, and returns whether it is still wanted. The child calls this first.
    /// Makes no system call and allocates nothing.
    pub(super) fn set_running(&self) -> bool {
        self.running.store(true, Ordering::SeqCst);
        !self.is_abandoned()
    }

    /// Records the step that the child is about to do. Makes no system call and allocates nothing.
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.store(stage as i32, Ordering::Release);
    }

    /// The step that the child is in, if it may block.
    pub(crate) fn stage(&self) -> Option<Stage> {
        Stage::from_number(self.stage.load(Ordering::Acquire))
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Makes a later child exit before its first step.
    pub(crate) fn set_abandoned(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    /// Kills the child if it is being cloned.
    pub(crate) fn kill(&self) {
        let _taking = self.taking.lock();
        if self.running.load(Ordering::SeqCst) {
            let fd = self.pidfd.load(Ordering::Acquire);
            // SAFETY: a child runs, so the kernel has stored its pidfd. It is open, because its owner
            // closes it only after it was taken.
            let pidfd = unsafe { BorrowedFd::borrow_raw(fd) };
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::{AsFd, AsRawFd};
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::sys::child_setup::CloneProbe;
    use crate::sys::clone::{self, CloneOptions};
    use crate::sys::stack::ChildStack;

    #[test]
    fn failed_clone_leaves_no_process_to_kill() {
        if !clone::has_clone3() {
            return;
        }
        let slot = ChildSlot::new();
        let mut stack = ChildStack::new().expect("a stack");
        // Not a cgroup: the clone fails after the kernel has stored the number of a pidfd.
        let null = std::fs::File::open("/dev/null").expect("/dev/null opens");
        let options = CloneOptions {
            cgroup: Some(null.as_fd()),
            ..CloneOptions::default()
        };
        let entry = CloneProbe::Exit.entry();
        let none = std::ptr::null_mut();
        // SAFETY: the probe is made for this and takes no argument.
        let cloned = unsafe { clone::clone(options, &mut stack, entry, none, &slot) };
        assert!(cloned.is_err(), "the clone fails");
        let number = slot.pidfd.load(Ordering::Acquire);

        let mut other = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat starts");
        let open = || pidfd_open(Pid::from_child(&other), PidfdFlags::empty()).expect("a pidfd");
        // One of these has the stored number, if there is one.
        let pidfds: Vec<_> = std::iter::repeat_with(open).take(100).collect();
        let reused = pidfds.iter().any(|fd| fd.as_raw_fd() == number);
        assert!(reused || number < 0, "the number {number} is in use again");
        slot.kill();
        let mut stdin = other.stdin.take().expect("a pipe");
        let _ = stdin.write_all(b"alive\n");
        let mut line = String::new();
        let mut stdout = BufReader::new(other.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("cat writes");
        assert_eq!(line, "alive\n");
        drop(stdin);
        assert!(other.wait().expect("cat exits").success());
    }
}
