//! Descriptors of a child.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use outpost_process::{MAX_PASSED_FDS, SpawnErrorKind, Wrapper, WrapperStdio};

use crate::support::*;

#[tokio::test]
async fn child_inherits_only_three_streams() {
    // Not close-on-exec, as inherited from a careless parent: one below the spawner's descriptors, one
    // above, and one far above.
    let null = std::fs::File::open("/dev/null").expect("it opens");
    let before = rustix::io::dup(&null).expect("it is duplicated");
    let spawner = spawner();
    let after = rustix::io::dup(&null).expect("it is duplicated");
    let mut above = rustix::io::fcntl_dupfd_cloexec(&null, 200).expect("it is duplicated");
    rustix::io::dup2(&null, &mut above).expect("it is duplicated");
    for careless in [&before, &after, &above] {
        let flags = rustix::io::fcntl_getfd(careless).expect("it is open");
        assert!(flags.is_empty(), "{flags:?} on {}", careless.as_raw_fd());
    }

    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        let finished = run(&spawner, command(&["ls", "/proc/self/fd"], stdio)).await;
        let open: Vec<_> = finished.stdout.split_whitespace().collect();
        // The last one is the listed directory itself.
        assert_eq!(open, ["0", "1", "2", "3"], "{stdio:?}");
    }
}

#[tokio::test]
async fn child_ends_are_blocking() {
    let script = "cat /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2";
    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        let finished = run(&spawner(), sh(script, stdio)).await;
        let flags = finished
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("flags:"));
        let flags: Vec<_> = flags
            .map(|flags| i32::from_str_radix(flags.trim(), 8).expect("octal"))
            .collect();
        assert_eq!(flags.len(), 3, "{}", finished.stdout);
        for flags in flags {
            assert_eq!(flags & 0o4000, 0, "{stdio:?} is non-blocking: {flags:o}");
        }
    }
}

#[tokio::test]
async fn child_leads_its_group_or_terminal_session() {
    let spawner = spawner();
    for stdio in [PIPES, PTY] {
        let mut child = start(&spawner, command(&["cat", "/proc/self/stat"], stdio)).await;
        let pid = child.control.pid().to_string();
        let finished = finish(&mut child).await;
        let (_, rest) = finished.stdout.rsplit_once(") ").expect("a line of stat");
        let fields: Vec<_> = rest.split(' ').collect();
        assert_eq!(fields[2], pid, "group");
        // Its parent is this program or a subreaper.
        let parent = stat(fields[1].parse().expect("a number")).expect("it is alive");
        match stdio == PTY {
            true => assert_eq!(fields[3], pid, "session"),
            false => assert_eq!(Some(fields[3]), parent.split(' ').nth(3), "session"),
        }
    }
}

#[tokio::test]
async fn passed_descriptors_follow_streams() {
    for spawner in spawner_of_each_kind() {
        for (stdio, wrapper) in [
            (PIPES, None),
            (PTY, None),
            (PIPES, Some(Wrapper { own: None })),
            (PTY, Some(Wrapper { own: None })),
        ] {
            let pipes = [(); MAX_PASSED_FDS].map(|()| std::io::pipe().expect("a pipe"));
            let (readers, writers): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
            let passed = writers.into_iter().map(|write| Arc::new(write.into()));
            let last = 2 + MAX_PASSED_FDS;
            let script = format!(
                "for n in $(seq 3 {last}); do echo heard $n >/proc/self/fd/$n; done; ls -v /proc/self/fd"
            );
            let mut command = sh(&script, stdio);
            command.passed = passed.collect();
            command.wrapper = wrapper;
            let finished = run(&spawner, command).await;
            let open: Vec<_> = finished.stdout.split_whitespace().collect();
            // With the directory itself.
            let expected: Vec<_> = (0..=last + 1).map(|number| number.to_string()).collect();
            assert_eq!(open, expected, "{stdio:?}");
            for (number, mut read) in (3..).zip(readers) {
                let mut heard = String::new();
                read.read_to_string(&mut heard)
                    .expect("all writers have closed it");
                assert_eq!(heard, format!("heard {number}\n"));
            }
        }
    }
}

#[tokio::test]
async fn wrapper_ignores_signals_and_has_its_own_session() {
    for spawner in spawner_of_each_kind() {
        for stdio in [PIPES, PTY] {
            let mut command = sh("cat /proc/$$/status; cat /proc/$$/stat", stdio);
            command.wrapper = Some(Wrapper { own: None });
            let finished = run(&spawner, command).await;
            let ignored = finished
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"));
            let ignored = ignored.map(|set| u64::from_str_radix(set.trim(), 16));
            let child = 1 << (libc::SIGCHLD - 1);
            let unheard = (1 << (libc::SIGKILL - 1)) | (1 << (libc::SIGSTOP - 1));
            assert_eq!(ignored, Some(Ok(!(child | unheard))), "{stdio:?}");
            let stat = finished.stdout.lines().last().expect("its last line");
            let fields: Vec<_> = stat.split_whitespace().collect();
            assert_eq!(fields[5], fields[0], "session");
        }
    }
}

#[tokio::test]
async fn too_many_passed_descriptors_are_rejected() {
    for spawner in spawner_of_each_kind() {
        let (_, write) = std::io::pipe().expect("a pipe");
        let write = Arc::new(write.into());
        let mut command = sh("true", PIPES);
        command.passed = vec![write; MAX_PASSED_FDS + 1];
        let refused = spawner.spawn(command).await.expect_err("it is refused");
        assert_eq!(refused.kind(), SpawnErrorKind::Descriptors);
    }
}

/// A wrapper may outlive the wrapped program and must not hold its streams open.
#[tokio::test]
async fn wrapper_with_own_stdio_gets_streams_after_passed_descriptors() {
    for spawner in spawner_of_each_kind() {
        for stdio in [PIPES, PTY] {
            let (mut heard, words) = std::io::pipe().expect("a pipe");
            let (_, given) = std::io::pipe().expect("a pipe");
            let kept = std::fs::File::open("/etc/passwd").expect("it is there");
            let script = "[ /proc/self/fd/0 -ef /etc/passwd ] && echo kept >&5; \
                [ /proc/self/fd/1 -ef /dev/null ] && echo null >&5; echo word >&2; \
                tty <&4 >&5; (: >/dev/tty) && echo controls >&5; echo last >&2";
            let mut command = sh(script, stdio);
            command.passed = vec![Arc::new(given.into())];
            command.wrapper = Some(Wrapper {
                own: Some(WrapperStdio {
                    held: Some(Arc::new(kept.into())),
                    stderr: Arc::new(words.into()),
                }),
            });
            let finished = run(&spawner, command).await;
            let lines: Vec<_> = finished.stdout.lines().map(str::trim_end).collect();
            assert_eq!(lines[..2], ["kept", "null"], "{stdio:?}");
            match stdio == PTY {
                true => {
                    assert!(lines[2].starts_with("/dev/pts/"), "{lines:?}");
                    assert_eq!(lines[3], "controls");
                }
                false => assert_eq!(lines[2], "not a tty"),
            }
            let mut said = String::new();
            heard
                .read_to_string(&mut said)
                .expect("all writers have closed it");
            assert!(
                said.starts_with("word\n") && said.ends_with("last\n"),
                "{said}"
            );
        }
    }
}
