//! Memory that nobody uses any more.
#![expect(unsafe_code, reason = "the allocator is asked through libc")]

/// Gives memory back to the system that was freed and is still held for later, which can be many
/// times what is in use once a flood is over. Takes a few milliseconds: nothing for a task. For a
/// program to call; nothing in here does.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no preconditions.
    unsafe {
        libc::malloc_trim(0)
    };
}
