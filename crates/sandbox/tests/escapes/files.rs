//! Reading and changing what isn't granted.

use std::path::Path;

use outpost_sandbox::{Access, Presence};

use crate::cell::{Cell, is_root, rule, text};

const READ_ONLY: &str = "Read-only file system";
const DENIED: &str = "Permission denied";

#[test]
fn what_is_granted_works() {
    let cell = Cell::new();
    let file = cell.file(cell.inside("file"));
    for attempt in ["write", "read", "chmod", "chown", "touch", "label"] {
        cell.confined(&[attempt, text(&file)]).succeeds();
    }
    let (new, other) = (cell.inside("new"), cell.inside("other"));
    cell.confined(&["create", text(&new)]).succeeds();
    cell.confined(&["rename", text(&new), text(&other)])
        .succeeds();
    cell.confined(&["remove", text(&other)]).succeeds();
    cell.confined(&["make-directory", text(&new)]).succeeds();
}

#[test]
fn nothing_beside_it_can_be_changed_in_any_way() {
    let cell = Cell::new();
    let file = cell.file(cell.outside("file"));
    for attempt in ["write", "chmod", "chown", "touch", "label"] {
        cell.free(&[attempt, text(&file)]).succeeds();
        cell.confined(&[attempt, text(&file)]).fails(READ_ONLY);
    }
    let new = cell.outside("new");
    cell.confined(&["create", text(&new)]).fails(READ_ONLY);
    cell.free(&["create", text(&new)]).succeeds();
    cell.confined(&["remove", text(&new)]).fails(READ_ONLY);
    let to = cell.outside("renamed");
    cell.confined(&["rename", text(&new), text(&to)])
        .fails(READ_ONLY);
    cell.free(&["rename", text(&new), text(&to)]).succeeds();
}

#[test]
fn links_lead_nowhere() {
    let cell = Cell::new();
    let file = cell.file(cell.outside("file"));
    for (attempt, words) in [
        ("symlink-and-write", READ_ONLY),
        ("link-and-write", "cross-device"),
    ] {
        let (free, confined) = (cell.inside("free"), cell.inside("confined"));
        cell.free(&[attempt, text(&file), text(&free)]).succeeds();
        cell.confined(&[attempt, text(&file), text(&confined)])
            .fails(words);
        std::fs::remove_file(free).expect("it was made");
        let _ = std::fs::remove_file(confined);
    }
}

#[test]
fn the_roots_in_proc_are_this_one() {
    let cell = Cell::new();
    let file = cell.file(cell.outside("file"));
    let root = format!("/proc/self/root{}", text(&file));
    for path in [root.as_str(), "/proc/self/cwd/../file"] {
        cell.confined(&["write", path]).fails(READ_ONLY);
    }
    let first = format!("/proc/1/root{}", text(&file));
    cell.confined(&["write", &first]).fails(DENIED);
}

#[test]
fn the_kernels_settings_are_read_only_even_for_root() {
    let cell = Cell::new();
    let paths = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"];
    // Not every kernel has the second.
    for path in paths.into_iter().filter(|path| Path::new(path).exists()) {
        if is_root() {
            cell.free(&["open-to-write", path]).succeeds();
        }
        let words = if is_root() { READ_ONLY } else { "" };
        cell.confined(&["open-to-write", path]).fails(words);
    }
    let mut cell = Cell::new();
    cell.plan.rules[0].access = Access::Write;
    cell.confined(&["open-to-write", "/proc/sys/kernel/core_pattern"])
        .fails("");
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if is_root() && Path::new(path).exists() {
        cell.free(&["open-to-write", path]).succeeds();
        cell.confined(&["open-to-write", path]).fails(READ_ONLY);
    }
}

#[test]
fn a_device_cannot_be_made() {
    let cell = Cell::new();
    let device = cell.inside("device");
    if is_root() {
        cell.free(&["make-device", text(&device)]).succeeds();
        std::fs::remove_file(&device).expect("it was made");
    }
    cell.confined(&["make-device", text(&device)]).fails("");
    assert!(!device.exists());
}

#[test]
fn a_file_cannot_be_opened_by_its_number() {
    let cell = Cell::new();
    let file = cell.file(cell.outside("file"));
    cell.confined(&["by-handle", text(&file)])
        .fails("not permitted");
}

#[test]
fn what_is_denied_can_neither_be_read_nor_listed_nor_replaced() {
    let cell = Cell::new();
    let file = cell.file(cell.inside("key.pem"));
    let folder = cell.inside("secret");
    std::fs::create_dir(&folder).expect("a folder");
    let within = cell.file(folder.join("file"));
    let cell = cell.and(Access::Deny, &file).and(Access::Deny, &folder);
    for path in [&file, &within] {
        cell.free(&["read", text(path)]).succeeds();
        cell.confined(&["read", text(path)]).fails(DENIED);
        cell.confined(&["write", text(path)]).fails("");
    }
    let listed = cell.script("ls secret; cat secret/* key.pem");
    assert_eq!(listed.stdout(), "");
    let away = cell.inside("away");
    cell.confined(&["rename", text(&file), text(&away)])
        .fails("busy");
    cell.confined(&["rename", text(&folder), text(&away)])
        .fails("busy");
    cell.confined(&["remove", text(&file)]).fails("busy");
}

#[test]
fn a_grant_within_what_is_denied_can_be_reached_and_nothing_beside_it() {
    let cell = Cell::new();
    let (closed, open) = (cell.outside("closed"), cell.outside("closed/open"));
    std::fs::create_dir_all(&open).expect("folders");
    let hidden = cell.file(closed.join("hidden"));
    let shown = cell.file(open.join("shown"));
    let cell = cell.and(Access::Deny, &closed).and(Access::Write, &open);
    cell.confined(&["write", text(&shown)]).succeeds();
    cell.confined(&["read", text(&hidden)])
        .fails("No such file");
    cell.confined(&["create", text(&closed.join("new"))])
        .fails("");
}

#[test]
fn what_is_protected_is_read_only_and_stays_where_it_is() {
    let cell = Cell::new();
    let git = cell.inside(".git");
    std::fs::create_dir(&git).expect("a folder");
    let config = cell.file(git.join("config"));
    let cell = cell.and(Access::Read, &git);
    cell.free(&["write", text(&config)]).succeeds();
    cell.confined(&["read", text(&config)]).succeeds();
    cell.confined(&["write", text(&config)]).fails(READ_ONLY);
    let away = cell.inside("away");
    cell.confined(&["rename", text(&git), text(&away)])
        .fails("busy");
}

#[test]
fn what_is_absent_stays_so_and_leaves_nothing() {
    let cell = Cell::new();
    let (git, secret) = (cell.inside(".git"), cell.inside(".env"));
    let mut cell = cell.and(Access::Read, &git).and(Access::Deny, &secret);
    for path in [&git, &secret] {
        assert_eq!(rule(Access::Deny, path).presence, Presence::Absent);
        cell.confined(&["create", text(path)]).fails("exists");
        cell.confined(&["make-directory", text(path)])
            .fails("exists");
        cell.confined(&["create", text(&path.join("x"))]).fails("");
        cell.confined(&["rename", text(path), text(&cell.inside("y"))])
            .fails("busy");
        assert!(!path.exists(), "nothing is left");
    }
    // Without the rules nothing keeps it from being created.
    cell.plan.rules.truncate(2);
    cell.confined(&["make-directory", text(&git)]).succeeds();
}

#[test]
fn one_that_ends_leaves_the_others_what_they_need() {
    let cell = Cell::new();
    let git = cell.inside(".git");
    let cell = cell.and(Access::Read, &git);
    let (mut command, hold) = cell.command(&["/bin/cat".as_ref()]);
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut longer = command.spawn().expect("it starts");
    // It comes and goes meanwhile.
    cell.confined(&["make-directory", text(&git)]).fails("");
    assert!(git.exists(), "it is still needed");
    drop(longer.stdin.take());
    longer.wait().expect("it ends");
    drop(hold);
    assert!(!git.exists());
}

#[test]
fn without_a_root_only_what_is_granted_exists() {
    let mut cell = Cell::new();
    let file = cell.file(cell.outside("file"));
    // As a plan for the least a program needs would have it.
    cell.plan.rules.remove(0);
    let folders = ["/usr", "/bin", "/lib", "/lib64", "/sbin"].map(Path::new);
    for folder in folders.into_iter().filter(|folder| folder.exists()) {
        match folder.read_link() {
            Ok(target) => cell.plan.links.push(outpost_sandbox::Link {
                path: folder.to_owned(),
                target,
            }),
            Err(_) => cell.plan.rules.push(rule(Access::Read, folder)),
        }
    }
    let outcome = cell.script(&format!(
        "cat {}; ls /home /root /etc; touch /new; echo done > ok; cat ok",
        text(&file)
    ));
    assert_eq!(outcome.stdout(), "done\n");
    assert!(!Path::new("/new").exists());
}

#[test]
fn what_can_not_be_masked_is_not_started() {
    if !is_root() {
        return;
    }
    let cell = Cell::new();
    let (theirs, secret) = (cell.outside("theirs"), cell.outside("theirs/secret"));
    std::fs::create_dir_all(&secret).expect("folders");
    std::os::unix::fs::chown(&theirs, Some(65534), None).expect("it changes hands");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&theirs, closed).expect("it is closed");
    let cell = cell.and(Access::Deny, &secret);
    cell.free(&["list", text(&secret)]).succeeds();
    // Root without capabilities gets nowhere in there, and neither does who mounts.
    let refused = cell.confined(&["list", text(&secret)]);
    assert_eq!((refused.code(), refused.stdout().as_str()), (1, ""));
}
