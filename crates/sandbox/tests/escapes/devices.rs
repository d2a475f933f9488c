//! What lies among the devices and is none.

use std::path::Path;
use std::process::{Command, Stdio};

use outpost_sandbox::{Access, Mounter, PrepareError};

use crate::cell::{Cell, is_root, text};

const READ_ONLY: &str = "Read-only file system";

#[test]
fn files_below_dev_are_files() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let workspace = shared.path().join("workspace");
    let hooks = workspace.join(".git/hooks");
    std::fs::create_dir_all(&hooks).expect("folders");
    let mut cell = Cell::new();
    let hook = cell.file(hooks.join("post-commit"));
    cell.follow(&[(Access::Read, Path::new("/")), (Access::Write, &workspace)]);
    cell.free(&["write", text(&hook)]).succeeds();
    cell.confined(&["write", text(&hook)]).fails(READ_ONLY);
    let away = workspace.join("away");
    cell.confined(&["rename", text(&workspace.join(".git")), text(&away)])
        .fails("busy");
    cell.confined(&["create", text(&workspace.join("new"))])
        .succeeds();
    assert!(workspace.join("new").exists());
}

#[test]
fn what_may_be_read_below_dev_may_not_be_written() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut cell = Cell::new();
    let file = cell.file(shared.path().join("file"));
    cell.follow(&[
        (Access::Read, Path::new("/")),
        (Access::Read, shared.path()),
    ]);
    cell.confined(&["read", text(&file)]).succeeds();
    cell.confined(&["write", text(&file)]).fails(READ_ONLY);
    cell.confined(&["create", text(&shared.path().join("new"))])
        .fails(READ_ONLY);
}

#[test]
fn what_is_denied_below_dev_stays_in_its_place() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let secret = shared.path().join("a/secret");
    std::fs::create_dir_all(&secret).expect("folders");
    let mut cell = Cell::new();
    let key = cell.file(secret.join("key"));
    cell.follow(&[
        (Access::Read, Path::new("/")),
        (Access::Write, shared.path()),
        (Access::Deny, &secret),
    ]);
    cell.confined(&["read", text(&key)])
        .fails("Permission denied");
    let (from, to) = (shared.path().join("a"), shared.path().join("b"));
    cell.confined(&["rename", text(&from), text(&to)])
        .fails("busy");
}

#[test]
fn a_device_is_not_granted_by_halves() {
    let devices = [
        "/dev/kvm",
        "/dev/fuse",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/net/tun",
    ];
    let devices = devices.map(Path::new);
    for device in devices.into_iter().filter(|device| device.exists()) {
        let cell = Cell::new().and(Access::Read, device);
        let refused = cell.sandbox().confine(&cell.plan, cell.program());
        assert!(
            matches!(refused, Err(PrepareError::Device(_))),
            "{}",
            device.display()
        );
    }
}

/// They are root's own, and an owner needs no capability.
#[test]
fn its_devices_are_not_its_own_to_change() {
    if is_root() && crate::MOUNTER == Mounter::Bubblewrap {
        // It knows no device that is read-only, which is said where it is said what that means.
        return;
    }
    let cell = Cell::new();
    let nodes = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /proc/self/fd/0";
    for node in nodes.split(' ') {
        // To what it is anyway.
        let tries = format!("chmod $(stat -Lc %a {node}) {node}");
        if is_root() {
            let free = Command::new("/bin/sh")
                .args(["-c", &tries])
                .stdin(Stdio::null())
                .status();
            assert!(free.expect("it runs").success(), "{node}");
        }
        cell.script(&tries).complains(match is_root() {
            true => READ_ONLY,
            false => "chmod",
        });
        if node != "/dev/tty" {
            cell.script(&format!("head -c 1 {node}")).succeeds();
        }
    }
}
