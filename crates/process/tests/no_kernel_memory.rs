//! If the kernel has no memory for a child or its pipes, that start fails and releases everything. In
//! its own program, because a seccomp filter cannot be removed.

use std::fs;

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "this test needs only a part of it")]
mod support;

use outpost_process::{Exit, SpawnErrorKind};
use support::*;

/// A seccomp filter that fails system calls as a kernel without memory would, except for new threads.
mod filter {
    #![expect(unsafe_code, reason = "no crate we have installs a filter")]

    /// Loads the system call number, or the lower half of an argument.
    const fn load(offset: u32) -> libc::sock_filter {
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
    }

    const fn filter(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        }
    }

    /// Makes `call` fail with `errno` in every thread of this program.
    pub(super) fn refuse(call: libc::c_long, errno: i32) {
        let program = [
            load(0),
            filter(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                call as u32,
            ),
            filter(
                libc::BPF_RET | libc::BPF_K,
                0,
                0,
                libc::SECCOMP_RET_ERRNO | errno as u32,
            ),
            filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: sets a flag of this process.
        let allowed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(allowed, 0, "a program may give up privileges");
        // SAFETY: the program is complete and outlives the call, which copies it.
        let installed = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            )
        };
        assert_eq!(installed, 0, "a program may filter its own calls");
    }
}

/// The number of open descriptors, without those reserved for the next start.
fn open() -> usize {
    let entries = fs::read_dir("/proc/self/fd").expect("there is a proc");
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|path| !path.to_string_lossy().contains("/outpost-"))
        .count()
}

#[tokio::test]
async fn kernel_out_of_memory_fails_only_the_start() {
    let spawner = spawner();
    let mut running = within("a child", spawner.spawn(command(&["cat"], PIPES_AND_STDIN)))
        .await
        .expect("there is memory still");
    let before = open();

    filter::refuse(libc::SYS_clone3, libc::ENOMEM);
    filter::refuse(libc::SYS_clone, libc::ENOMEM);
    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        let refused = within("the answer", spawner.spawn(command(&["true"], stdio))).await;
        let error = refused.expect_err("there is no memory for a child");
        assert_eq!(error.kind(), SpawnErrorKind::Clone);
        let said = error.to_string();
        assert!(
            said.ends_with("Cannot allocate memory (os error 12)"),
            "{said}"
        );
    }
    eventually("the descriptors", || open() == before).await;

    filter::refuse(libc::SYS_pipe2, libc::ENFILE);
    let refused = within("the answer", spawner.spawn(command(&["true"], PIPES))).await;
    let error = refused.expect_err("there is no memory for pipes");
    assert_eq!(error.kind(), SpawnErrorKind::Descriptors);
    assert_eq!(error.raw_os_error(), Some(libc::ENFILE));
    eventually("the descriptors", || open() == before).await;

    // A running child is not affected.
    drop(running.stdin.take());
    assert_eq!(finish(&mut running).await.exit, Exit::Code(0));
}
