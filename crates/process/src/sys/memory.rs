//! Settings of the heap.
#![expect(unsafe_code, reason = "calls malloc_trim and mallopt")]

use rustix::process::{Resource, getrlimit};

/// Returns freed memory that the allocator still holds to the kernel (see `malloc_trim(3)`). After a
/// flood of output this can be many times the memory in use. Blocks for a few milliseconds. For a
/// program to call; this crate never does.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no preconditions.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Makes all threads share one heap if the address space of this process is limited. Otherwise each thread
/// reserves 64 MiB, after which small allocations fail although little is in use. For a program to call before
/// it has a second thread; this crate never does.
pub fn adapt_heap_to_limits() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if getrlimit(Resource::As).current.is_some() {
        // SAFETY: no preconditions. Returns 0 on failure, which changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}
