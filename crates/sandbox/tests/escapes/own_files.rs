//! A process changes or forges files of Outpost itself.

use std::path::{Path, PathBuf};

use outpost_sandbox::Access;
use outpost_sandbox::planning::OwnPath;
use outpost_sandbox::policy::{Entry, FileSystem};

use crate::fixture::Fixture;

/// Returns a fixture whose workspace contains a configuration and a runtime directory of the server.
fn with_own_paths() -> (Fixture, PathBuf, PathBuf) {
    let fixture = Fixture::new();
    let (config, runtime) = (fixture.inside(".config/outpost"), fixture.inside("runtime"));
    let own_paths = vec![
        OwnPath::read_only(config.clone()),
        OwnPath::read_only(config.join("outpost.toml")),
        OwnPath {
            path: runtime.clone(),
            access: Access::Deny,
            creates: true,
            only_if_present: false,
        },
    ];
    (fixture.with_own_paths(own_paths), config, runtime)
}

fn plan_workspace(fixture: &mut Fixture) {
    let workspace = fixture.inside("");
    fixture.plan_paths(&[(Access::Read, Path::new("/")), (Access::Write, &workspace)]);
}

const CHANGE: &str = "echo evil > .config/outpost/outpost.toml";

#[test]
fn configuration_cannot_be_changed_replaced_or_moved() {
    let (mut fixture, config, _) = with_own_paths();
    std::fs::create_dir_all(&config).expect("create directories");
    let file = fixture.file(config.join("outpost.toml"));
    plan_workspace(&mut fixture);
    for script in [
        CHANGE,
        "rm .config/outpost/outpost.toml",
        "echo evil > new && mv new .config/outpost/outpost.toml",
        "mv .config/outpost .config/moved",
        "mv .config moved",
        "chmod 000 .config/outpost",
    ] {
        assert_ne!(fixture.script(script).code(), 0, "{script}");
    }
    let text = std::fs::read_to_string(&file).expect("read");
    assert_eq!(text, "original");
    // Not even if the policy names it.
    let (root, workspace) = (Path::new("/"), fixture.inside(""));
    fixture.plan_paths(&[
        (Access::Read, root),
        (Access::Write, &workspace),
        (Access::Write, &config),
        (Access::Write, &file),
    ]);
    assert_ne!(fixture.script(CHANGE).code(), 0);
    fixture.plan_files(FileSystem::Unrestricted).expect("plan");
    assert_ne!(fixture.script(CHANGE).code(), 0);
    // It can be read, and everything else can be written.
    assert_eq!(fixture.script("cat .config/outpost/*").stdout(), "original");
    fixture.script("echo x > .config/other").assert_success();
}

#[test]
fn runtime_directory_is_hidden_and_cannot_be_replaced() {
    let (mut fixture, _, runtime) = with_own_paths();
    std::fs::create_dir(&runtime).expect("create directory");
    fixture.file(runtime.join("server.sock"));
    plan_workspace(&mut fixture);
    for script in [
        "cat runtime/server.sock",
        "rm -r runtime",
        "mv runtime moved",
        "ln -sf /tmp runtime/server.sock",
        "mkfifo runtime/server.log",
    ] {
        assert_ne!(fixture.script(script).code(), 0, "{script}");
    }
    let names = runtime.read_dir().expect("list").count();
    assert_eq!(names, 1);
}

#[test]
fn absent_own_paths_cannot_be_created() {
    let (mut fixture, config, runtime) = with_own_paths();
    plan_workspace(&mut fixture);
    for script in [
        &format!("mkdir -p .config/outpost && {CHANGE}"),
        "mkdir runtime",
        "mkdir forged && mv -T forged runtime && touch runtime/server.sock",
    ] {
        assert_ne!(fixture.script(script).code(), 0, "{script}");
    }
    assert!(!config.exists());
    assert!(!runtime.join("server.sock").exists());
}

/// A copy of the helper stands for a server that was built in the workspace.
#[test]
fn own_program_cannot_be_replaced() {
    let mut fixture = Fixture::new().with_program_inside();
    plan_workspace(&mut fixture);
    for script in ["rm bin/escape", "echo evil > bin/escape", "mv bin moved"] {
        assert_ne!(fixture.script(script).code(), 0, "{script}");
    }
    fixture.script("echo x > bin/other").assert_success();
    let entries = [
        Entry::path("/", Access::Read),
        Entry::path(fixture.inside("bin/escape"), Access::Write),
    ];
    fixture.plan_entries(entries);
    assert_ne!(fixture.script("echo evil > bin/escape").code(), 0);
}
