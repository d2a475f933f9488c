//! System calls that bypass namespaces.

use crate::fixture::{Fixture, is_root, text};
use crate::landlock::levels;

#[test]
fn outside_processes_are_invisible_and_cannot_be_signalled() {
    let fixture = Fixture::new();
    let own = std::process::id().to_string();
    fixture.unsandboxed(&["signal", &own]).assert_success();
    fixture
        .sandboxed(&["signal", &own])
        .assert_fails("No such process");
    let seen = fixture.script("echo /proc/[0-9]*");
    let seen = seen.stdout();
    let numbers: Vec<_> = seen.split_whitespace().collect();
    assert_eq!(
        numbers,
        ["/proc/1", "/proc/2"],
        "the shell and bubblewrap's first process"
    );
}

#[test]
fn tracing_keyrings_and_namespaces_are_rejected() {
    let fixture = Fixture::new();
    for attempt in ["trace", "memory", "keys", "user-namespace"] {
        fixture.unsandboxed(&[attempt]).assert_success();
        fixture.sandboxed(&[attempt]).assert_fails("not permitted");
    }
    fixture.unsandboxed(&["clone-namespace"]).assert_success();
    fixture
        .sandboxed(&["clone-namespace"])
        .assert_fails("not implemented");
}

#[test]
fn io_uring_is_rejected() {
    let fixture = Fixture::new();
    let setting = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if setting.is_ok_and(|setting| setting.trim() == "0") {
        fixture.unsandboxed(&["ring"]).assert_success();
    }
    fixture.sandboxed(&["ring"]).assert_fails("not permitted");
}

/// Such a file would give its owner's rights to processes outside.
#[test]
fn setuid_and_setgid_files_cannot_be_created() {
    const CALLS: [&str; 6] = [
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "mknodat",
        "openat",
        "nameless",
    ];
    let x86_calls = if cfg!(target_arch = "x86_64") {
        &["chmod", "mknod", "creat", "open"][..]
    } else {
        &[]
    };
    let fixture = Fixture::new();
    let mut count = 0;
    for call in CALLS.iter().chain(x86_calls) {
        for mode in ["4755", "2755", "6711"] {
            count += 1;
            let file = fixture.inside(&format!("{count}"));
            if call.contains("chmod") {
                fixture.file(file.clone());
            }
            fixture
                .sandboxed(&["mode", call, mode, text(&file)])
                .assert_fails("not permitted");
            fixture
                .unsandboxed(&["mode", call, mode, text(&file)])
                .assert_success();
            // Other modes are allowed.
            let file = fixture.inside(&format!("{count}-plain"));
            if call.contains("chmod") {
                fixture.file(file.clone());
            }
            fixture
                .sandboxed(&["mode", call, "1755", text(&file)])
                .assert_success();
        }
    }
    // Its arguments can't be inspected; libraries fall back to openat.
    let file = fixture.inside("behind-a-pointer");
    fixture
        .sandboxed(&["mode", "openat2", "4755", text(&file)])
        .assert_fails("not implemented");
    fixture
        .unsandboxed(&["mode", "openat2", "4755", text(&file)])
        .assert_success();
}

#[test]
fn mounting_is_rejected() {
    let fixture = Fixture::new();
    let directory = fixture.inside("directory");
    std::fs::create_dir(&directory).expect("create directory");
    if is_root() {
        fixture
            .unsandboxed(&["mount", text(&directory)])
            .assert_success();
    }
    fixture
        .sandboxed(&["mount", text(&directory)])
        .assert_fails("not permitted");
}

/// Seccomp rejects them even on kernels that lack them.
#[test]
fn newer_mount_calls_are_rejected() {
    let fixture = Fixture::new();
    for attempt in ["tree", "quota"] {
        fixture.sandboxed(&[attempt]).assert_fails("not permitted");
    }
}

/// A lease delays `open` in every other process for up to 45 seconds.
#[test]
fn leases_are_rejected() {
    for fixture in levels().map(|level| Fixture::new().at(level)) {
        let file = fixture.file(fixture.inside("file"));
        fixture
            .unsandboxed(&["lease", text(&file)])
            .assert_success();
        fixture
            .sandboxed(&["lease", text(&file)])
            .assert_fails("not permitted");
    }
}

#[test]
fn terminal_input_injection_is_rejected() {
    let fixture = Fixture::new();
    let setting = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if is_root() || setting.is_ok_and(|setting| setting.trim() == "1") {
        fixture.unsandboxed(&["type"]).assert_success();
        fixture.unsandboxed(&["type-elsewhere"]).assert_success();
    }
    fixture.sandboxed(&["type"]).assert_fails("not permitted");
    fixture
        .sandboxed(&["type-elsewhere"])
        .assert_fails("not permitted");
}

#[test]
fn sysv_shared_memory_of_the_host_is_unreachable() {
    let fixture = Fixture::new();
    let created = std::process::Command::new("ipcmk")
        .args(["--shmem", "4096"])
        .output();
    let Ok(created) = created else {
        // The ipcmk command isn't installed everywhere.
        return;
    };
    let id = String::from_utf8_lossy(&created.stdout);
    let id = id.rsplit(' ').next().unwrap_or_default().trim().to_owned();
    let table = std::fs::read_to_string("/proc/sysvipc/shm").expect("read table");
    let row = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let key = row.clone().find(|row| row.get(1) == Some(&&*id));
    let key = key.expect("segment exists")[0].to_owned();
    let unsandboxed = fixture.unsandboxed(&["shared-memory", &key]);
    let sandboxed = fixture.sandboxed(&["shared-memory", &key]);
    let _ = std::process::Command::new("ipcrm")
        .args(["--shmem-id", &id])
        .status();
    unsandboxed.assert_success();
    sandboxed.assert_fails("No such file");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn foreign_architecture_kills_the_process() {
    let fixture = Fixture::new();
    // Some kernels don't support 32-bit calls; then there is nothing to forbid.
    if fixture.unsandboxed(&["foreign"]).code() == 0 {
        assert_eq!(fixture.sandboxed(&["foreign"]).code(), 159);
    }
}
