//! A process plants a symbolic link where the next process is granted a directory.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::PathBuf;

use outpost_sandbox::policy::{Entry, FileSystem};
use outpost_sandbox::{Access, HelperCommand, Level};

use crate::fixture::{Fixture, helper_command, is_root, sandbox_with, text};
use crate::landlock::levels;

/// Returns a fixture with a package in the workspace and a home directory beside it.
fn with_package() -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.inside("packages/app")).expect("create directories");
    let home = fixture.outside("home");
    std::fs::create_dir_all(home.join(".ssh")).expect("create directories");
    (fixture, home)
}

/// Replaces the package by a link to the home directory.
const PLANT: &str = "mv packages/app packages/moved && ln -s ../../home packages/app";

/// Returns the directory where [`restart`] makes the sandbox record granted directories.
fn grant_record(fixture: &Fixture) -> PathBuf {
    fixture.outside("state/sandbox")
}

/// Uses a new sandbox, as after a restart of the server.
fn restart(fixture: &mut Fixture, level: Level) {
    let helper = HelperCommand {
        grant_record: Some(grant_record(fixture)),
        ..helper_command()
    };
    fixture.sandbox = sandbox_with(level, helper);
}

fn writable(path: PathBuf) -> FileSystem {
    FileSystem::restricted(vec![
        Entry::path("/", Access::Read),
        Entry::path(path, Access::Write),
    ])
}

#[test]
fn planted_link_does_not_decide_what_is_writable() {
    for level in levels() {
        let (fixture, home) = with_package();
        let mut fixture = fixture.at(level);
        let (workspace, package) = (fixture.inside(""), fixture.inside("packages/app"));
        fixture.plan_files(writable(workspace)).expect("plan");
        fixture.script(PLANT).assert_success();
        for path in [package.clone(), package.join(".ssh")] {
            let refused = fixture.plan_files(writable(path)).expect_err("planted");
            let message = refused.to_string();
            assert!(message.contains("earlier sandboxed process"), "{message}");
        }
        assert!(!home.join(".ssh/authorized_keys").exists());
        // The target itself can be granted.
        fixture.plan_files(writable(home)).expect("plan");
    }
}

#[test]
fn planted_link_is_recognized_after_a_restart() {
    for level in levels() {
        let (mut fixture, home) = with_package();
        restart(&mut fixture, level);
        let (workspace, package) = (fixture.inside(""), fixture.inside("packages/app"));
        fixture.plan_files(writable(workspace)).expect("plan");
        fixture.script(PLANT).assert_success();
        restart(&mut fixture, level);
        let refused = fixture.plan_files(writable(package.clone()));
        let message = refused.expect_err("planted").to_string();
        assert!(message.contains("earlier sandboxed process"), "{message}");
        fixture.plan_files(writable(home)).expect("plan");
        // Without the record, a planted link could not be distinguished from other links.
        std::fs::write(grant_record(&fixture).join("granted"), "x").expect("write");
        restart(&mut fixture, level);
        let refused = fixture.plan_files(writable(package));
        let message = refused.expect_err("damaged").to_string();
        assert!(message.contains("is damaged"), "{message}");
    }
}

/// Also where everything is writable, and as its owner.
#[test]
fn record_of_granted_directories_cannot_be_reached() {
    let (mut fixture, _) = with_package();
    restart(&mut fixture, Level::Namespaces);
    let (state, record) = (fixture.outside("state"), grant_record(&fixture));
    fixture
        .plan_files(writable(fixture.inside("")))
        .expect("plan");
    fixture.script("true").assert_success();
    let everything = FileSystem::restricted(vec![Entry::path("/", Access::Write)]);
    fixture.plan_files(everything).expect("plan");
    let (at, above) = (text(&record), text(&state));
    for script in [
        format!("cat {at}/granted"),
        format!("ls {at} | grep ."),
        format!("echo x > {at}/granted"),
        format!("rm -f {at}/granted; test ! -e {at}/granted && ls {at}"),
        format!("mv {at} {at}.moved"),
        format!("mv {above} {above}.moved"),
        format!("rmdir {at}"),
        format!("flock -n {at} true"),
    ] {
        let outcome = fixture.script(&script);
        assert!(outcome.code() != 0, "{script}");
    }
    let stored = std::fs::read(record.join("granted")).expect("read");
    assert!(stored.starts_with(b"outpost granted directories 1 2\n"));
    let shell = |script: &str| {
        let script = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .output();
        script.expect("run").status.success()
    };
    assert!(shell(&format!("cat {at}/granted && flock -n {at} true")));
}

/// Shows that the link would be followed without the earlier grant.
#[test]
fn link_that_no_sandboxed_process_could_plant_is_followed() {
    let (mut fixture, home) = with_package();
    let planted = std::process::Command::new("/bin/sh")
        .args(["-c", PLANT])
        .current_dir(fixture.inside(""))
        .status();
    assert!(planted.expect("run").success());
    let package = fixture.inside("packages/app");
    fixture.plan_files(writable(package)).expect("plan");
    let script = "echo key > ../home/.ssh/authorized_keys";
    fixture.script(script).assert_success();
    assert!(home.join(".ssh/authorized_keys").exists());
}

/// As in `/tmp`. Only root can give the link away.
#[test]
fn link_of_another_user_in_a_shared_directory_is_rejected() {
    if !is_root() {
        return;
    }
    let (mut fixture, home) = with_package();
    let shared = fixture.outside("shared");
    let link = shared.join("link");
    std::fs::create_dir(&shared).expect("create directory");
    symlink(&home, &link).expect("create link");
    fixture.plan_files(writable(link.clone())).expect("our own");
    lchown(&link, Some(65534), None).expect("chown");
    fixture
        .plan_files(writable(link.clone()))
        .expect("not shared");
    std::fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("chmod");
    let refused = fixture.plan_files(writable(link)).expect_err("planted");
    let message = refused.to_string();
    assert!(
        message.contains("another user's symbolic link"),
        "{message}"
    );
}
