//! The stack that a child uses until `execve`.
#![expect(unsafe_code, reason = "a stack with a guard page comes from mmap")]

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};

/// More than the code before `execve` needs. Untouched pages cost nothing.
const SIZE: usize = 64 * 1024;

/// A guard below the stack, so that an overflow is a fault in the child and not memory corruption in
/// the server.
const GUARD: usize = 16 * 1024;

/// A stack for one child at a time. The child shares the server's memory and must not run on the
/// thread's own stack, where it would overwrite the frames of the clone.
#[derive(Debug)]
pub(crate) struct ChildStack {
    base: NonNull<c_void>,
}

// SAFETY: it owns its memory and is not tied to a thread.
unsafe impl Send for ChildStack {}

impl ChildStack {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address that the kernel picks.
        let base = unsafe { libc::mmap(ptr::null_mut(), GUARD + SIZE, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(base) = NonNull::new(base) else {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        };
        let stack = Self { base };
        // SAFETY: the range is the lower part of the mapping just made, which is not in use yet.
        match unsafe { libc::mprotect(base.as_ptr(), GUARD, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The lowest address a child may use.
    pub(crate) fn bottom(&self) -> *mut c_void {
        self.base.as_ptr().wrapping_byte_add(GUARD)
    }

    /// The end of the stack, where a child starts. Aligned for every ABI.
    pub(crate) fn top(&self) -> *mut c_void {
        self.bottom().wrapping_byte_add(SIZE)
    }

    pub(crate) fn size(&self) -> usize {
        SIZE
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: the mapping is exclusively owned, and no child runs on it: a clone borrows the stack
        // until its child has called `execve` or exited.
        unsafe { libc::munmap(self.base.as_ptr(), GUARD + SIZE) };
    }
}
