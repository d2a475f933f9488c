//! Returns freed heap memory to the kernel.
#![expect(unsafe_code, reason = "calls malloc_trim")]

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
