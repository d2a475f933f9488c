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

/// The size from which an allocation has memory of its own, which is returned when it is freed. By default,
/// this size grows to 32 MiB when large allocations are freed, and large messages then stay in the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_MEMORY_BYTES: libc::c_int = 1024 * 1024;

/// Keeps the memory of the heap near the memory in use. If the address space of this process is limited, all
/// threads share one heap: otherwise each reserves 64 MiB, after which small allocations fail although little
/// is in use. For a program to call before it has a second thread; this crate never does.
pub fn configure_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        set_heap_parameter(libc::M_MMAP_THRESHOLD, OWN_MEMORY_BYTES);
        if getrlimit(Resource::As).current.is_some() {
            set_heap_parameter(libc::M_ARENA_MAX, 1);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set_heap_parameter(parameter: libc::c_int, value: libc::c_int) {
    // SAFETY: no preconditions. Returns 0 on failure, which changes nothing.
    unsafe { libc::mallopt(parameter, value) };
}
