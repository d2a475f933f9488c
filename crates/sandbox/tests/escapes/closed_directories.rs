//! A process closes a directory so that planning for the next process can't inspect it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outpost_sandbox::Access;
use outpost_sandbox::policy::{Entry, SpecialPath};

use crate::fixture::Fixture;

/// Opens the directory, copies a file and creates another.
const ATTEMPT: &str = "chmod 755 d; cat d/secret > copy; echo evil > d/secret; echo evil > d/new";

fn new_fixture() -> Fixture {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.inside("d")).expect("create directory");
    fixture.file(fixture.inside("d/secret"));
    fixture
}

/// Runs two scripts in sequence, each with a new plan for the same entries.
fn run_both(fixture: &mut Fixture, more: Entry, first: &str, second: &str) {
    let entries = [
        Entry::path("/", Access::Read),
        Entry::path(fixture.inside(""), Access::Write),
        more,
    ];
    fixture.plan_entries(entries.clone());
    fixture.script(first).assert_success();
    fixture.plan_entries(entries);
    fixture.try_script(second);
    let open = Permissions::from_mode(0o755);
    std::fs::set_permissions(fixture.inside("d"), open).expect("chmod");
}

fn content(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn denied_path_stays_denied_after_reopening() {
    let fixture = new_fixture();
    fixture.script("chmod 000 d").assert_success();
    fixture.script(ATTEMPT).assert_success();
    let copy = content(fixture.inside("copy"));
    assert_eq!(copy, "original", "no entry denies it");
    for mode in ["000", "111", "311", "444"] {
        for (kind, access, named) in [
            ("path", Access::Deny, "d/secret"),
            ("path", Access::Read, "d/secret"),
            ("path", Access::Deny, "d/new"),
            ("subpath", Access::Deny, "d/secret"),
            ("pattern", Access::Deny, "d/secret"),
            ("pattern", Access::Deny, "d/*ecret"),
            ("pattern", Access::Deny, "**/secret"),
        ] {
            let case = format!("{} {kind} {named}, {mode}", access.as_str());
            let mut fixture = new_fixture();
            let entry = match kind {
                "path" => Entry::path(fixture.inside(named), access),
                "subpath" => Entry::special(SpecialPath::below_project_roots(named), access),
                _ => Entry::pattern(named, access),
            };
            run_both(&mut fixture, entry, &format!("chmod {mode} d"), ATTEMPT);
            if named == "d/new" {
                assert!(!fixture.inside(named).exists(), "{case}");
                continue;
            }
            assert_eq!(content(fixture.inside("d/secret")), "original", "{case}");
            if access == Access::Deny {
                assert_eq!(content(fixture.inside("copy")), "", "{case}");
            }
        }
    }
}

/// Its protected names can't be inspected.
#[test]
fn writable_root_in_closed_directory_is_not_granted() {
    let mut fixture = new_fixture();
    std::fs::create_dir_all(fixture.inside("d/sub/.git")).expect("create directories");
    let config = fixture.file(fixture.inside("d/sub/.git/config"));
    let entry = Entry::path(fixture.inside("d/sub"), Access::Write).skip_missing();
    let attempt = "chmod 755 d; echo evil > d/sub/.git/config";
    run_both(&mut fixture, entry, "chmod 000 d", attempt);
    assert_eq!(content(config), "original");
}

#[test]
fn placeholders_are_removed_from_closed_directories() {
    let mut fixture = new_fixture();
    let workspace = fixture.inside("");
    let absent = fixture.inside("d/absent");
    fixture.plan_paths(&[
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Deny, &absent),
    ]);
    fixture
        .script("chmod 555 . && chmod 000 d")
        .assert_success();
    let mode = |path: &Path| path.metadata().expect("read metadata").mode() & 0o7777;
    assert_eq!((mode(&workspace), mode(&fixture.inside("d"))), (0o555, 0));
    for path in [&workspace, &fixture.inside("d")] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("chmod");
    }
    let names: Vec<_> = workspace.read_dir().expect("read metadata").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(!absent.exists());
}
