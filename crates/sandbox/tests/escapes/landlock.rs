//! The tests with and without Landlock.
#![expect(unsafe_code, reason = "a seccomp filter")]

use std::ffi::c_int;
use std::io;
use std::sync::Once;

use outpost_sandbox::Level;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Returns the levels that can be enforced in this test program.
pub(crate) fn levels() -> impl Iterator<Item = Level> {
    let landlock = crate::HAS_LANDLOCK.then_some(Level::Landlock);
    [Level::Namespaces].into_iter().chain(landlock)
}

/// In a test program without Landlock, makes its system calls fail with `ENOSYS`, as on a kernel without it.
pub(crate) fn hide_if_absent() {
    static FILTER: Once = Once::new();
    if !crate::HAS_LANDLOCK {
        FILTER.call_once(|| install().expect("a seccomp filter"));
    }
}

/// Installs a filter for this process and all that it starts. The numbers of the calls are consecutive.
fn install() -> io::Result<()> {
    let number = |call| u32::try_from(call).expect("a small number");
    let first = number(libc::SYS_landlock_create_ruleset);
    let last = number(libc::SYS_landlock_restrict_self);
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let instruction = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    // The number of the system call is the first member of `struct seccomp_data`.
    let mut filter = [
        instruction(LOAD, 0, 0, 0),
        instruction(AT_LEAST, first, 0, 2),
        instruction(ABOVE, last, 1, 0),
        instruction(RETURN, unknown, 0, 0),
        instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: 5,
        filter: filter.as_mut_ptr(),
    };
    let check = |result: i64| match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: no pointers.
    let privileges: c_int = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    check(privileges.into())?;
    let (mode, all_threads) = (
        libc::SECCOMP_SET_MODE_FILTER,
        libc::SECCOMP_FILTER_FLAG_TSYNC,
    );
    // SAFETY: the program and its instructions outlive the call, which copies them.
    check(unsafe { libc::syscall(libc::SYS_seccomp, mode, all_threads, &raw const program) })
}
