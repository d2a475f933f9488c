//! What a child has open.

use std::os::fd::AsRawFd;

use crate::support::*;

#[tokio::test]
async fn nothing_but_the_three_streams_is_inherited() {
    let spawner = spawner();
    // Without close-on-exec, as a careless parent leaves them to the server.
    let null = std::fs::File::open("/dev/null").expect("it opens");
    let low = rustix::io::dup(&null).expect("it is duplicated");
    let mut high = rustix::io::fcntl_dupfd_cloexec(&null, 200).expect("it is duplicated");
    rustix::io::dup2(&null, &mut high).expect("it is duplicated");
    let flags = rustix::io::fcntl_getfd(&low).expect("it is open");
    assert!(flags.is_empty(), "{flags:?} on {}", low.as_raw_fd());
    let flags = rustix::io::fcntl_getfd(&high).expect("it is open");
    assert!(flags.is_empty(), "{flags:?} on {}", high.as_raw_fd());

    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        let finished = run(&spawner, command(&["ls", "/proc/self/fd"], stdio)).await;
        let open: Vec<_> = finished.stdout.split_whitespace().collect();
        // The last one is the directory itself.
        assert_eq!(open, ["0", "1", "2", "3"], "{stdio:?}");
    }
}

#[tokio::test]
async fn its_own_ends_block() {
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
async fn it_leads_its_group_and_on_a_terminal_its_session() {
    let spawner = spawner();
    let own_session = stat(std::process::id().cast_signed()).expect("we are alive");
    let own_session = own_session.split(' ').nth(3).expect("a session").to_owned();
    for stdio in [PIPES, PTY] {
        let mut child = start(&spawner, command(&["cat", "/proc/self/stat"], stdio)).await;
        let pid = child.control.pid().to_string();
        let finished = finish(&mut child).await;
        let (_, rest) = finished.stdout.rsplit_once(") ").expect("a line of stat");
        let fields: Vec<_> = rest.split(' ').collect();
        assert_eq!(fields[2], pid, "group");
        match stdio == PTY {
            true => assert_eq!(fields[3], pid, "session"),
            false => assert_eq!(fields[3], own_session, "session"),
        }
    }
}
