//! Devices, and files below `/dev`.

use std::path::Path;
use std::process::{Command, Stdio};

use outpost_sandbox::{Access, Mounter, PrepareError};

use crate::fixture::{Fixture, is_root, text};

const READ_ONLY: &str = "Read-only file system";

#[test]
fn files_below_dev_are_sandboxed_like_others() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("create directory");
    let workspace = shared.path().join("workspace");
    let hooks = workspace.join(".git/hooks");
    std::fs::create_dir_all(&hooks).expect("create directories");
    let mut fixture = Fixture::new();
    let hook = fixture.file(hooks.join("post-commit"));
    fixture.plan_paths(&[(Access::Read, Path::new("/")), (Access::Write, &workspace)]);
    fixture
        .unsandboxed(&["write", text(&hook)])
        .assert_success();
    fixture
        .sandboxed(&["write", text(&hook)])
        .assert_fails(READ_ONLY);
    let away = workspace.join("away");
    fixture
        .sandboxed(&["rename", text(&workspace.join(".git")), text(&away)])
        .assert_fails("busy");
    fixture
        .sandboxed(&["create", text(&workspace.join("new"))])
        .assert_success();
    assert!(workspace.join("new").exists());
}

#[test]
fn readable_file_below_dev_is_not_writable() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("create directory");
    let mut fixture = Fixture::new();
    let file = fixture.file(shared.path().join("file"));
    fixture.plan_paths(&[
        (Access::Read, Path::new("/")),
        (Access::Read, shared.path()),
    ]);
    fixture.sandboxed(&["read", text(&file)]).assert_success();
    fixture
        .sandboxed(&["write", text(&file)])
        .assert_fails(READ_ONLY);
    fixture
        .sandboxed(&["create", text(&shared.path().join("new"))])
        .assert_fails(READ_ONLY);
}

#[test]
fn denied_directory_below_dev_cannot_be_read_or_renamed() {
    let shared = tempfile::tempdir_in("/dev/shm").expect("create directory");
    let secret = shared.path().join("a/secret");
    std::fs::create_dir_all(&secret).expect("create directories");
    let mut fixture = Fixture::new();
    let key = fixture.file(secret.join("key"));
    fixture.plan_paths(&[
        (Access::Read, Path::new("/")),
        (Access::Write, shared.path()),
        (Access::Deny, &secret),
    ]);
    fixture
        .sandboxed(&["read", text(&key)])
        .assert_fails("Permission denied");
    let (from, to) = (shared.path().join("a"), shared.path().join("b"));
    fixture
        .sandboxed(&["rename", text(&from), text(&to)])
        .assert_fails("busy");
}

#[test]
fn read_only_grant_of_a_device_is_rejected() {
    let devices = [
        "/dev/kvm",
        "/dev/fuse",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/net/tun",
    ];
    let devices = devices.map(Path::new);
    for device in devices.into_iter().filter(|device| device.exists()) {
        let fixture = Fixture::new().and(Access::Read, device);
        let rejected = fixture.sandbox().prepare(&fixture.plan, fixture.program());
        assert!(
            matches!(rejected, Err(PrepareError::ReadOnlyDevice(_))),
            "{}",
            device.display()
        );
    }
}

/// Root owns them, and an owner needs no capability for `chmod`.
#[test]
fn device_modes_cannot_be_changed() {
    if is_root() && crate::MOUNTER == Mounter::Bubblewrap {
        // Bubblewrap can't mount devices read-only; docs/sandbox.md says so.
        return;
    }
    let fixture = Fixture::new();
    let nodes = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /proc/self/fd/0";
    for node in nodes.split(' ') {
        // To the mode that it has.
        let script = format!("chmod $(stat -Lc %a {node}) {node}");
        if is_root() {
            let unsandboxed = Command::new("/bin/sh")
                .args(["-c", &script])
                .stdin(Stdio::null())
                .status();
            assert!(unsandboxed.expect("run").success(), "{node}");
        }
        fixture
            .script(&script)
            .assert_stderr(if is_root() { READ_ONLY } else { "chmod" });
        if node != "/dev/tty" {
            fixture
                .script(&format!("head -c 1 {node}"))
                .assert_success();
        }
    }
}
