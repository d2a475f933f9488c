//! Watches of missing paths: what can be watched, and what fires them.

use std::fs;
use std::path::{Path, PathBuf};

use outpost_files::MissingPathsRequest;

use crate::support::Fixture;

/// Watches a missing path, does something, and returns whether the watch fired.
fn fires(
    prepare: impl FnOnce(&Fixture),
    missing: &[&str],
    present: Option<&str>,
    act: impl FnOnce(&Fixture),
) -> bool {
    let mut fixture = Fixture::new();
    prepare(&fixture);
    assert!(fixture.missing(1, missing, present), "it can be watched");
    act(&fixture);
    match fixture.fired().as_slice() {
        [] => false,
        [1] => true,
        other => panic!("one notification at most: {other:?}"),
    }
}

#[test]
fn appearance_of_any_kind_fires() {
    let appear = |act: fn(&Fixture)| fires(|at| at.write("other"), &["a"], None, act);
    assert!(appear(|at| at.write("a")));
    assert!(appear(|at| at.mkdir("a")));
    assert!(appear(|at| at.link("nowhere", "a")), "a dangling link");
    assert!(appear(|at| at.rename("other", "a")));
    assert!(appear(|at| at.run(&["mkfifo"], "a")));
    assert!(appear(
        |at| fs::hard_link(at.path("other"), at.path("a")).unwrap()
    ));
    assert!(appear(|at| {
        at.write("a");
        at.remove("a");
    }));
}

#[test]
fn first_absent_parent_fires() {
    assert!(fires(|_| {}, &["p/q/r"], None, |at| at.mkdir("p")));
    assert!(!fires(|_| {}, &["p/q/r"], None, |at| at.mkdir("q")));
}

#[test]
fn changes_of_existing_parents_fire() {
    let parent = |act: fn(&Fixture)| fires(|at| at.mkdir("1/2/3/4"), &["1/2/3/4/a"], None, act);
    assert!(parent(|at| at.rename("1", "9")));
    assert!(parent(|at| at.rename("1/2/3/4", "1/2/3/5")));
    assert!(parent(|at| at.rmdir("1/2/3/4")));
    assert!(parent(|at| at.chmod("1/2", 0o700)));
    assert!(parent(|at| at.run(&["touch", "-d", "2001-01-01"], "1")));
}

#[test]
fn changes_of_the_present_path_fire() {
    let present = |act: fn(&Fixture)| {
        let prepare = |at: &Fixture| {
            at.mkdir("d");
            at.write("d/p");
            at.write("new");
        };
        fires(prepare, &["a"], Some("d/p"), act)
    };
    assert!(present(|at| at.write("d/p")));
    assert!(present(|at| at.chmod("d/p", 0o600)));
    assert!(present(|at| at.rename("new", "d/p")));
    assert!(present(|at| at.rename("d/p", "d/q")));
    assert!(present(|at| at.remove("d/p")));
    assert!(present(|at| at.rename("d", "e")));
}

#[test]
fn entries_of_a_present_directory_do_not_fire() {
    let inside = |act: fn(&Fixture)| fires(|at| at.mkdir("p"), &["a"], Some("p"), act);
    assert!(!inside(|at| at.write("p/new")));
    assert!(!inside(|at| {
        at.write("p/new");
        at.write("p/new");
        at.chmod("p/new", 0o600);
        at.mkdir("p/directory");
    }));
    assert!(inside(|at| at.chmod("p", 0o700)));
}

#[test]
fn siblings_do_not_fire() {
    let sibling = |act: fn(&Fixture)| fires(|at| at.write("b"), &["a"], None, act);
    assert!(!sibling(|at| at.write("b")));
    assert!(!sibling(|at| at.chmod("b", 0o600)));
    assert!(!sibling(|at| at.remove("b")));
    assert!(!sibling(|at| at.mkdir("c")));
    assert!(!sibling(|at| at.write("ab")), "a name with the same prefix");
}

#[test]
fn watch_fires_once() {
    let mut fixture = Fixture::new();
    assert!(fixture.missing(7, &["a", "b"], None));
    fixture.write("a");
    fixture.write("b");
    fixture.remove("a");
    assert_eq!(fixture.fired(), [7]);
    fixture.write("a");
    assert_eq!(fixture.fired(), [0; 0]);
}

#[test]
fn ids_increase_and_a_higher_one_replaces_the_watch() {
    let mut fixture = Fixture::new();
    assert!(fixture.missing(5, &["a"], None));
    assert!(!fixture.missing(5, &["b"], None), "the same id");
    assert!(!fixture.missing(4, &["b"], None), "a lower id");
    fixture.write("b");
    fixture.write("a");
    assert_eq!(fixture.fired(), [5], "the watch stayed armed");
    assert!(!fixture.missing(5, &["c"], None), "an id that has fired");
    assert!(fixture.missing(6, &["c"], None));
    assert!(!fixture.missing(7, &[], None), "nothing to watch");
    fixture.write("c");
    assert_eq!(fixture.fired(), [0; 0], "the earlier one was dropped");
    assert!(fixture.missing(8, &["d"], None));
    assert!(!fixture.missing(9, &["a"], None), "it exists");
    assert!(!fixture.missing(9, &["e"], None), "a refused id is used");
    fixture.write("d");
    assert_eq!(fixture.fired(), [0; 0], "whatever the answer was");
}

#[test]
fn existing_paths_and_links_are_not_watched() {
    let fixture = Fixture::new();
    fixture.write("file");
    fixture.mkdir("real");
    fixture.link("real", "link");
    fixture.link("nowhere", "dangling");
    let refused: [(&[&str], Option<&str>); 9] = [
        (&["file"], None),
        (&["a", "file"], None),
        (&["dangling"], None),
        (&["link/a"], None),
        (&["dangling/a"], None),
        (&["file/a"], None),
        (&["a"], Some("absent")),
        (&["a"], Some("link")),
        (&["a"], Some("link/a")),
    ];
    for (id, (missing, present)) in refused.into_iter().enumerate() {
        let id = id as u64 + 1;
        assert!(
            !fixture.missing(id, missing, present),
            "{missing:?} {present:?}"
        );
    }
    assert!(fixture.missing(100, &["real/a"], Some("file")));
}

#[test]
fn numbers_are_limited() {
    let fixture = Fixture::new();
    fixture.write("present");
    let names: Vec<String> = (0..65).map(|number| format!("a{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(fixture.missing(1, &names[..64], Some("present")));
    assert!(!fixture.missing(2, &names, None));
    assert!(!fixture.missing(3, &["same"; 100], None));
    let longest = "n".repeat(255);
    assert!(fixture.missing(4, &[&longest], None));
    assert!(!fixture.missing(5, &["n".repeat(256).as_str()], None));
    assert!(!fixture.missing(6, &[format!("absent/{longest}n").as_str()], None));
    let depth = fixture.path("").iter().count() - 1;
    let deep = vec!["d"; 64 - depth].join("/");
    assert!(fixture.missing(7, &[&deep], None));
    assert!(!fixture.missing(8, &[format!("{deep}/d").as_str()], None));
}

#[test]
fn watched_directories_are_limited() {
    let fixture = Fixture::new();
    let above = fixture.path("").ancestors().count();
    let paths: Vec<String> = (0..=64 - above)
        .map(|number| format!("d{number}/a"))
        .collect();
    for path in &paths {
        fixture.mkdir(path.strip_suffix("/a").unwrap());
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert!(
        fixture.missing(1, &paths[..64 - above], None),
        "64 directories"
    );
    assert!(!fixture.missing(2, &paths, None), "65 directories");
}

#[test]
fn file_systems_of_the_kernel_are_not_watched() {
    let fixture = Fixture::new();
    let watch = |id, path: &str| {
        fixture.missing_paths(MissingPathsRequest {
            id,
            missing: vec![Some(PathBuf::from(path))],
            present: None,
        })
    };
    assert!(!watch(1, "/proc/outpost-missing"));
    assert!(!watch(2, "/sys/outpost-missing"));
    assert!(!watch(3, "/"));
    if Path::new("/dev/shm").is_dir() {
        assert!(watch(4, "/dev/shm/outpost-missing"), "a tmpfs");
    }
    assert!(watch(5, "/dev/outpost-missing"), "a devtmpfs or tmpfs");
}

#[test]
fn paths_that_this_host_cannot_have_are_not_watched() {
    let fixture = Fixture::new();
    let possible = Some(fixture.path("a"));
    for (id, (missing, present)) in [
        (vec![None], None),
        (vec![possible.clone(), None], None),
        (vec![possible], Some(None)),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64;
        let paths = MissingPathsRequest {
            id,
            missing,
            present,
        };
        assert!(!fixture.missing_paths(paths));
    }
}
