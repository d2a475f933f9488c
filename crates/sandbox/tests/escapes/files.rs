//! Reads and writes without a grant.

use std::path::Path;

use outpost_sandbox::{Access, PathState};

use crate::fixture::{Fixture, is_root, rule, text};

const READ_ONLY: &str = "Read-only file system";
const DENIED: &str = "Permission denied";

#[test]
fn granted_operations_succeed() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.inside("file"));
    for attempt in ["write", "read", "chmod", "chown", "touch", "label"] {
        fixture.sandboxed(&[attempt, text(&file)]).assert_success();
    }
    let (new, other) = (fixture.inside("new"), fixture.inside("other"));
    fixture.sandboxed(&["create", text(&new)]).assert_success();
    fixture
        .sandboxed(&["rename", text(&new), text(&other)])
        .assert_success();
    fixture
        .sandboxed(&["remove", text(&other)])
        .assert_success();
    fixture
        .sandboxed(&["make-directory", text(&new)])
        .assert_success();
}

#[test]
fn files_outside_the_workspace_cannot_be_changed() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.outside("file"));
    for attempt in ["write", "chmod", "chown", "touch", "label"] {
        fixture
            .unsandboxed(&[attempt, text(&file)])
            .assert_success();
        fixture
            .sandboxed(&[attempt, text(&file)])
            .assert_fails(READ_ONLY);
    }
    let new = fixture.outside("new");
    fixture
        .sandboxed(&["create", text(&new)])
        .assert_fails(READ_ONLY);
    fixture
        .unsandboxed(&["create", text(&new)])
        .assert_success();
    fixture
        .sandboxed(&["remove", text(&new)])
        .assert_fails(READ_ONLY);
    let to = fixture.outside("renamed");
    fixture
        .sandboxed(&["rename", text(&new), text(&to)])
        .assert_fails(READ_ONLY);
    fixture
        .unsandboxed(&["rename", text(&new), text(&to)])
        .assert_success();
}

#[test]
fn links_to_files_outside_do_not_help() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.outside("file"));
    for (attempt, message) in [
        ("symlink-and-write", READ_ONLY),
        ("link-and-write", "cross-device"),
    ] {
        let (free, sandboxed) = (fixture.inside("unsandboxed"), fixture.inside("sandboxed"));
        fixture
            .unsandboxed(&[attempt, text(&file), text(&free)])
            .assert_success();
        fixture
            .sandboxed(&[attempt, text(&file), text(&sandboxed)])
            .assert_fails(message);
        std::fs::remove_file(free).expect("remove file");
        let _ = std::fs::remove_file(sandboxed);
    }
}

#[test]
fn roots_in_proc_are_the_sandboxs_own() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.outside("file"));
    let root = format!("/proc/self/root{}", text(&file));
    for path in [root.as_str(), "/proc/self/cwd/../file"] {
        fixture.sandboxed(&["write", path]).assert_fails(READ_ONLY);
    }
    let first = format!("/proc/1/root{}", text(&file));
    // Denied, or hidden where bubblewrap makes the mounts.
    fixture.sandboxed(&["write", &first]).assert_fails("");
    fixture.sandboxed(&["read", "/proc/1/mem"]).assert_fails("");
}

#[test]
fn kernel_settings_are_read_only_even_for_root() {
    let fixture = Fixture::new();
    let paths = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"];
    // Some kernels lack the second one.
    for path in paths.into_iter().filter(|path| Path::new(path).exists()) {
        if is_root() {
            fixture
                .unsandboxed(&["open-to-write", path])
                .assert_success();
        }
        let message = if is_root() { READ_ONLY } else { "" };
        fixture
            .sandboxed(&["open-to-write", path])
            .assert_fails(message);
    }
    let mut fixture = Fixture::new();
    fixture.plan.rules[0].access = Access::Write;
    fixture
        .sandboxed(&["open-to-write", "/proc/sys/kernel/core_pattern"])
        .assert_fails("");
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if is_root() && Path::new(path).exists() {
        fixture
            .unsandboxed(&["open-to-write", path])
            .assert_success();
        fixture
            .sandboxed(&["open-to-write", path])
            .assert_fails(READ_ONLY);
    }
}

#[test]
fn device_cannot_be_created() {
    let fixture = Fixture::new();
    let device = fixture.inside("device");
    if is_root() {
        fixture
            .unsandboxed(&["make-device", text(&device)])
            .assert_success();
        std::fs::remove_file(&device).expect("remove file");
    }
    fixture
        .sandboxed(&["make-device", text(&device)])
        .assert_fails("");
    assert!(!device.exists());
}

#[test]
fn file_cannot_be_opened_by_handle() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.outside("file"));
    fixture
        .sandboxed(&["by-handle", text(&file)])
        .assert_fails("not permitted");
}

#[test]
fn denied_path_cannot_be_read_listed_or_replaced() {
    let fixture = Fixture::new();
    let file = fixture.file(fixture.inside("key.pem"));
    let directory = fixture.inside("secret");
    std::fs::create_dir(&directory).expect("create directory");
    let within = fixture.file(directory.join("file"));
    let fixture = fixture
        .and(Access::Deny, &file)
        .and(Access::Deny, &directory);
    for path in [&file, &within] {
        fixture.unsandboxed(&["read", text(path)]).assert_success();
        fixture
            .sandboxed(&["read", text(path)])
            .assert_fails(DENIED);
        fixture.sandboxed(&["write", text(path)]).assert_fails("");
    }
    let listed = fixture.script("ls secret; cat secret/* key.pem");
    assert_eq!(listed.stdout(), "");
    let away = fixture.inside("away");
    fixture
        .sandboxed(&["rename", text(&file), text(&away)])
        .assert_fails("busy");
    fixture
        .sandboxed(&["rename", text(&directory), text(&away)])
        .assert_fails("busy");
    fixture
        .sandboxed(&["remove", text(&file)])
        .assert_fails("busy");
}

#[test]
fn grant_below_denied_directory_is_reachable_alone() {
    let fixture = Fixture::new();
    let (closed, open) = (fixture.outside("closed"), fixture.outside("closed/open"));
    std::fs::create_dir_all(&open).expect("create directories");
    let hidden = fixture.file(closed.join("hidden"));
    let shown = fixture.file(open.join("shown"));
    let fixture = fixture.and(Access::Deny, &closed).and(Access::Write, &open);
    fixture.sandboxed(&["write", text(&shown)]).assert_success();
    fixture
        .sandboxed(&["read", text(&hidden)])
        .assert_fails("No such file");
    fixture
        .sandboxed(&["create", text(&closed.join("new"))])
        .assert_fails("");
}

#[test]
fn protected_directory_is_read_only_and_cannot_be_renamed() {
    let fixture = Fixture::new();
    let git = fixture.inside(".git");
    std::fs::create_dir(&git).expect("create directory");
    let config = fixture.file(git.join("config"));
    let fixture = fixture.and(Access::Read, &git);
    fixture
        .unsandboxed(&["write", text(&config)])
        .assert_success();
    fixture.sandboxed(&["read", text(&config)]).assert_success();
    fixture
        .sandboxed(&["write", text(&config)])
        .assert_fails(READ_ONLY);
    let away = fixture.inside("away");
    fixture
        .sandboxed(&["rename", text(&git), text(&away)])
        .assert_fails("busy");
}

#[test]
fn absent_path_cannot_be_created_and_leaves_nothing() {
    let fixture = Fixture::new();
    let (git, secret) = (fixture.inside(".git"), fixture.inside(".env"));
    let mut fixture = fixture.and(Access::Read, &git).and(Access::Deny, &secret);
    for path in [&git, &secret] {
        assert_eq!(rule(Access::Deny, path).presence, PathState::Absent);
        fixture
            .sandboxed(&["create", text(path)])
            .assert_fails("exists");
        fixture
            .sandboxed(&["make-directory", text(path)])
            .assert_fails("exists");
        fixture
            .sandboxed(&["create", text(&path.join("x"))])
            .assert_fails("");
        fixture
            .sandboxed(&["rename", text(path), text(&fixture.inside("y"))])
            .assert_fails("busy");
        assert!(!path.exists(), "nothing is left");
    }
    // Without the rules it can be created.
    fixture.plan.rules.truncate(2);
    fixture
        .sandboxed(&["make-directory", text(&git)])
        .assert_success();
}

#[test]
fn placeholder_is_kept_while_another_process_needs_it() {
    let fixture = Fixture::new();
    let git = fixture.inside(".git");
    let fixture = fixture.and(Access::Read, &git);
    let (mut command, resources) = fixture.command(&["/bin/cat".as_ref()]);
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut first = command.spawn().expect("spawn");
    // A second process starts and ends meanwhile.
    fixture
        .sandboxed(&["make-directory", text(&git)])
        .assert_fails("");
    assert!(git.exists(), "the first process needs it");
    drop(first.stdin.take());
    first.wait().expect("wait");
    drop(resources);
    assert!(!git.exists());
}

#[test]
fn without_a_root_only_grants_exist() {
    let mut fixture = Fixture::new();
    let file = fixture.file(fixture.outside("file"));
    // Like a plan with the minimal paths.
    fixture.plan.rules.remove(0);
    let directories = ["/usr", "/bin", "/lib", "/lib64", "/sbin"].map(Path::new);
    for directory in directories
        .into_iter()
        .filter(|directory| directory.exists())
    {
        match directory.read_link() {
            Ok(target) => fixture.plan.links.push(outpost_sandbox::Link {
                path: directory.to_owned(),
                target,
            }),
            Err(_) => fixture.plan.rules.push(rule(Access::Read, directory)),
        }
    }
    let outcome = fixture.script(&format!(
        "cat {}; ls /home /root /etc; touch /new; echo done > ok; cat ok",
        text(&file)
    ));
    assert_eq!(outcome.stdout(), "done\n");
    assert!(!Path::new("/new").exists());
}

#[test]
fn process_with_unmaskable_denial_does_not_start() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let (foreign, secret) = (fixture.outside("theirs"), fixture.outside("theirs/secret"));
    std::fs::create_dir_all(&secret).expect("create directories");
    std::os::unix::fs::chown(&foreign, Some(65534), None).expect("chown");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&foreign, closed).expect("chmod");
    let fixture = fixture.and(Access::Deny, &secret);
    fixture
        .unsandboxed(&["list", text(&secret)])
        .assert_success();
    // Root without capabilities can't enter the directory, and neither can the mounter.
    let rejected = fixture.sandboxed(&["list", text(&secret)]);
    assert_eq!((rejected.code(), rejected.stdout().as_str()), (1, ""));
}

/// A read-only mount doesn't prevent writing to a FIFO; Landlock does.
#[test]
fn fifo_that_was_not_granted_cannot_be_written() {
    let fixture = Fixture::new();
    let fifo = fixture.outside("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).expect("create FIFO");
    // Open for reading and writing, so that no attempt waits for a reader.
    let reader = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&fifo);
    let _reader = reader.expect("open");
    fixture
        .unsandboxed(&["write", text(&fifo)])
        .assert_success();
    let support = fixture.sandbox().preflight().expect("host is supported");
    if support.landlock > 0 {
        fixture
            .sandboxed(&["write", text(&fifo)])
            .assert_fails("Permission denied");
    }
    // A denied one is hidden with or without Landlock.
    let fixture = fixture.and(Access::Deny, &fifo);
    fixture
        .sandboxed(&["write", text(&fifo)])
        .assert_fails("Permission denied");
}
