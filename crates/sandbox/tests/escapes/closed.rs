//! A directory that one process closes, so that nobody who plans for the next can look into it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outpost_sandbox::Access;
use outpost_sandbox::policy::{Entry, Place, Special};

use crate::cell::Cell;

/// Opens it, takes a copy and leaves something. Root is refused where others find it masked.
const ATTEMPT: &str = "chmod 755 d; cat d/secret > copy; echo evil > d/secret; echo evil > d/new";

fn site() -> Cell {
    let cell = Cell::new();
    std::fs::create_dir(cell.inside("d")).expect("a folder");
    cell.file(cell.inside("d/secret"));
    cell
}

/// What one process may do, and then the next, by the same entries.
fn one_after_the_other(cell: &mut Cell, more: Entry, first: &str, second: &str) {
    let entries = [
        Entry::new(Place::Path("/".into()), Access::Read),
        Entry::new(Place::Path(cell.inside("")), Access::Write),
        more,
    ];
    cell.follow_entries(entries.clone());
    cell.script(first).succeeds();
    cell.follow_entries(entries);
    cell.try_script(second);
    let open = Permissions::from_mode(0o755);
    std::fs::set_permissions(cell.inside("d"), open).expect("it is ours");
}

fn content(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn whoever_opens_it_again_finds_what_was_denied_as_denied() {
    let cell = site();
    cell.script("chmod 000 d").succeeds();
    cell.script(ATTEMPT).succeeds();
    let copy = content(cell.inside("copy"));
    assert_eq!(copy, "original", "nobody has denied it");
    for mode in ["000", "111", "311", "444"] {
        for (at, access, named) in [
            ("path", Access::Deny, "d/secret"),
            ("path", Access::Read, "d/secret"),
            ("path", Access::Deny, "d/new"),
            ("subpath", Access::Deny, "d/secret"),
            ("pattern", Access::Deny, "d/secret"),
            ("pattern", Access::Deny, "d/*ecret"),
            ("pattern", Access::Deny, "**/secret"),
        ] {
            let told = format!("{} {at} {named}, {mode}", access.word());
            let mut cell = site();
            let place = match at {
                "path" => Place::Path(cell.inside(named)),
                "subpath" => Place::Special(Special::ProjectRoots {
                    below: named.into(),
                }),
                _ => Place::Pattern(named.to_owned()),
            };
            let entry = Entry::new(place, access);
            one_after_the_other(&mut cell, entry, &format!("chmod {mode} d"), ATTEMPT);
            if named == "d/new" {
                assert!(!cell.inside(named).exists(), "{told}");
                continue;
            }
            assert_eq!(content(cell.inside("d/secret")), "original", "{told}");
            if access == Access::Deny {
                assert_eq!(content(cell.inside("copy")), "", "{told}");
            }
        }
    }
}

/// The names that are protected in it could not be seen to.
#[test]
fn a_root_behind_it_is_not_granted() {
    let mut cell = site();
    std::fs::create_dir_all(cell.inside("d/sub/.git")).expect("folders");
    let config = cell.file(cell.inside("d/sub/.git/config"));
    let place = Place::Path(cell.inside("d/sub"));
    let entry = Entry::new(place, Access::Write).skipping_missing();
    let attempt = "chmod 755 d; echo evil > d/sub/.git/config";
    one_after_the_other(&mut cell, entry, "chmod 000 d", attempt);
    assert_eq!(content(config), "original");
}

#[test]
fn nothing_of_ours_is_left_in_one_that_was_closed() {
    let mut cell = site();
    let workspace = cell.inside("");
    let absent = cell.inside("d/absent");
    cell.follow(&[
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Deny, &absent),
    ]);
    cell.script("chmod 555 . && chmod 000 d").succeeds();
    let mode = |path: &Path| path.metadata().expect("it is there").mode() & 0o7777;
    assert_eq!((mode(&workspace), mode(&cell.inside("d"))), (0o555, 0));
    for path in [&workspace, &cell.inside("d")] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
    }
    let names: Vec<_> = workspace.read_dir().expect("it is there").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(!absent.exists());
}
