//! Sets the out-of-memory score of a child between clone and `execve`.
#![expect(
    unsafe_code,
    reason = "system calls on raw pointers, in a cloned process"
)]

/// Sets the score of this process. Returns whether it did. Opens a descriptor, so the table must be its own.
/// Fails if the process is not dumpable, except as root.
pub(super) fn write_own(score: &str) -> bool {
    let path = c"/proc/self/oom_score_adj".as_ptr();
    let flags = libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: a terminated string.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) };
    if file == -1 {
        return false;
    }
    // SAFETY: the text is valid for reads of its length.
    let written = unsafe { libc::syscall(libc::SYS_write, file, score.as_ptr(), score.len()) };
    // SAFETY: nothing else uses this descriptor.
    unsafe { libc::syscall(libc::SYS_close, file) };
    written != -1
}
