//! System calls that lead around everything else.

use crate::cell::{Cell, is_root, text};

#[test]
fn nobody_outside_can_be_seen_or_signalled() {
    let cell = Cell::new();
    let own = std::process::id().to_string();
    cell.free(&["signal", &own]).succeeds();
    cell.confined(&["signal", &own]).fails("No such process");
    let seen = cell.script("echo /proc/[0-9]*");
    let seen = seen.stdout();
    let numbers: Vec<_> = seen.split_whitespace().collect();
    assert_eq!(numbers, ["/proc/1", "/proc/2"], "it and who reaps for it");
}

#[test]
fn calls_that_lead_around_the_walls_are_refused() {
    let cell = Cell::new();
    for attempt in ["trace", "memory", "keys", "user-namespace"] {
        cell.free(&[attempt]).succeeds();
        cell.confined(&[attempt]).fails("not permitted");
    }
    cell.free(&["clone-namespace"]).succeeds();
    cell.confined(&["clone-namespace"]).fails("not implemented");
}

#[test]
fn a_ring_of_calls_is_refused() {
    let cell = Cell::new();
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if switch.is_ok_and(|switch| switch.trim() == "0") {
        cell.free(&["ring"]).succeeds();
    }
    cell.confined(&["ring"]).fails("not permitted");
}

/// Whoever runs such a file later, outside, would be somebody else.
#[test]
fn no_file_gives_its_owners_rights_away() {
    const LATER: [&str; 6] = [
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "mknodat",
        "openat",
        "nameless",
    ];
    let earlier = match cfg!(target_arch = "x86_64") {
        true => &["chmod", "mknod", "creat", "open"][..],
        false => &[],
    };
    let cell = Cell::new();
    let mut tried = 0;
    for way in LATER.iter().chain(earlier) {
        for mode in ["4755", "2755", "6711"] {
            tried += 1;
            let file = cell.inside(&format!("{tried}"));
            if way.contains("chmod") {
                cell.file(file.clone());
            }
            cell.confined(&["mode", way, mode, text(&file)])
                .fails("not permitted");
            cell.free(&["mode", way, mode, text(&file)]).succeeds();
            // Everything else about modes is the owner's business.
            let file = cell.inside(&format!("{tried}-plain"));
            if way.contains("chmod") {
                cell.file(file.clone());
            }
            cell.confined(&["mode", way, "1755", text(&file)])
                .succeeds();
        }
    }
    // What it would do can't be seen from outside, and libraries do without.
    let file = cell.inside("behind-a-pointer");
    cell.confined(&["mode", "openat2", "4755", text(&file)])
        .fails("not implemented");
    cell.free(&["mode", "openat2", "4755", text(&file)])
        .succeeds();
}

#[test]
fn nothing_can_be_mounted() {
    let cell = Cell::new();
    let folder = cell.inside("folder");
    std::fs::create_dir(&folder).expect("a folder");
    if is_root() {
        cell.free(&["mount", text(&folder)]).succeeds();
    }
    cell.confined(&["mount", text(&folder)])
        .fails("not permitted");
}

/// Not every kernel has them, and a filter is asked before that is looked at.
#[test]
fn what_newer_kernels_know_of_mounts_is_refused_too() {
    let cell = Cell::new();
    for attempt in ["tree", "quota"] {
        cell.confined(&[attempt]).fails("not permitted");
    }
}

#[test]
fn nobody_types_into_a_terminal() {
    let cell = Cell::new();
    let switch = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if is_root() || switch.is_ok_and(|switch| switch.trim() == "1") {
        cell.free(&["type"]).succeeds();
        cell.free(&["type-elsewhere"]).succeeds();
    }
    cell.confined(&["type"]).fails("not permitted");
    cell.confined(&["type-elsewhere"]).fails("not permitted");
}

#[test]
fn memory_shared_on_the_host_is_not_shared() {
    let cell = Cell::new();
    let made = std::process::Command::new("ipcmk")
        .args(["--shmem", "4096"])
        .output();
    let Ok(made) = made else {
        // It comes with the package that has setpriv, and isn't everywhere.
        return;
    };
    let id = String::from_utf8_lossy(&made.stdout);
    let id = id.rsplit(' ').next().unwrap_or_default().trim().to_owned();
    let table = std::fs::read_to_string("/proc/sysvipc/shm").expect("the table");
    let row = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let key = row.clone().find(|row| row.get(1) == Some(&&*id));
    let key = key.expect("it was made")[0].to_owned();
    let free = cell.free(&["shared-memory", &key]);
    let confined = cell.confined(&["shared-memory", &key]);
    let _ = std::process::Command::new("ipcrm")
        .args(["--shmem-id", &id])
        .status();
    free.succeeds();
    confined.fails("No such file");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn another_architecture_is_deadly() {
    let cell = Cell::new();
    // Not every kernel has it; where it isn't there, there is nothing to forbid.
    if cell.free(&["foreign"]).code() == 0 {
        assert_eq!(cell.confined(&["foreign"]).code(), 159);
    }
}
