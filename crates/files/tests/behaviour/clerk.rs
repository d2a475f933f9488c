//! Operations that somebody else does, at the other end of a line.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use outpost_files::{
    Clerk, Confined, Files, FilesError, Here, Limits, Line, Links, Masks, Remove, WalkOptions,
    serve,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

fn sockets() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// A clerk, and who does its work in a thread.
fn clerk(limits: Limits) -> (Clerk, JoinHandle<()>) {
    masked(limits, Masks::default())
}

fn masked(limits: Limits, masks: Masks) -> (Clerk, JoinHandle<()>) {
    let (ours, theirs) = sockets();
    let serving = std::thread::spawn(move || serve(theirs, is_empty));
    let line = Line::asking(ours, LONG, ()).unwrap();
    let files = Files::new(limits);
    let clerk = Clerk::Confined(Confined { line, files, masks });
    (clerk, serving)
}

/// As long as there is nothing in it, a place is held.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut names| names.next().is_none())
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn it_does_what_is_done_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let here = Clerk::here(Files::default());
    let (there, serving) = clerk(Limits::default());
    there
        .create_directory(&at("a/b"), true, Links::Follow)
        .unwrap();
    // More than any socket holds.
    let large = vec![7; 3 << 20];
    there.write(&at("a/b/f"), &large, Links::Refuse).unwrap();
    assert!(there.read(&at("a/b/f"), Links::Follow).unwrap() == large);
    there.copy(&at("a"), &at("c"), true).unwrap();
    std::os::unix::fs::symlink("c", at("link")).unwrap();
    let options = WalkOptions {
        max_depth: 9,
        max_directories: 9,
        max_entries: 99,
        follow_directory_symlinks: true,
        prune_hidden_directories: false,
    };
    for path in [at("link"), at("a"), at("missing")] {
        let of = |clerk: &Clerk| {
            (
                clerk
                    .metadata(&path, Links::Follow)
                    .map_err(|e| e.to_string()),
                clerk.canonicalize(&path).map_err(|e| e.to_string()),
                clerk.read_directory(&path).map_err(|e| e.to_string()),
                clerk.walk(&path, options).map_err(|e| e.to_string()),
                clerk.read(&path, Links::Refuse).map_err(|e| e.to_string()),
            )
        };
        assert_eq!(of(&there), of(&here), "{path:?}");
    }
    let how = Remove {
        recursive: true,
        force: false,
        links: Links::Follow,
    };
    there.remove(&at("c"), how).unwrap();
    assert!(!at("c").exists());
    drop(there);
    serving.join().unwrap();
}

#[test]
fn a_listing_longer_than_a_piece_arrives_whole() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1500 {
        let name = format!("{number:0>200}");
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let (there, _serving) = clerk(Limits::default());
    let listed = there.read_directory(folder.path()).unwrap();
    let here = Files::default().read_directory(folder.path()).unwrap();
    assert_eq!(listed, here);
}

#[test]
fn it_keeps_the_limits_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::write(folder.path().join(name), "12345").unwrap();
    }
    let (there, _serving) = clerk(Limits {
        file_bytes: 4,
        directory_entries: 1,
        ..Limits::default()
    });
    let read = there.read(&folder.path().join("a"), Links::Follow);
    assert!(matches!(read, Err(FilesError::FileTooLarge { limit: 4 })));
    let listed = there.read_directory(folder.path());
    assert!(matches!(
        listed,
        Err(FilesError::TooManyEntries { limit: 1 })
    ));
}

#[test]
fn a_stream_is_committed_there_or_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let (there, serving) = clerk(Limits::default());
    let writer = there.create_stream(&path).unwrap();
    writer.write_block(3, b"def").unwrap();
    writer.write_block(0, b"abc").unwrap();
    assert!(!path.exists());
    writer.commit().unwrap();
    serving.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");

    let (there, serving) = clerk(Limits::default());
    let writer = there.create_stream(&path).unwrap();
    writer.write_block(0, b"x").unwrap();
    drop(writer);
    serving.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
    assert_eq!(names(folder.path()), 1);
}

#[test]
fn who_has_gone_or_is_silent_is_told_apart() {
    let (ours, theirs) = sockets();
    let within = Duration::from_millis(10);
    let there = Clerk::Confined(Confined {
        line: Line::asking(ours, within, ()).unwrap(),
        files: Files::default(),
        masks: Masks::default(),
    });
    let path = Path::new("/");
    let silent = there.canonicalize(path);
    assert!(matches!(silent, Err(FilesError::Slow)), "{silent:?}");
    drop(theirs);
    let gone = there.canonicalize(path);
    assert!(matches!(gone, Err(FilesError::Unanswered)), "{gone:?}");
}

/// Every operation on a path, as what it says.
fn said(clerk: &Clerk, path: &Path, links: Links, elsewhere: &Path) -> Vec<String> {
    let word = |outcome: Result<(), FilesError>| match outcome {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    };
    let options = WalkOptions {
        max_depth: 9,
        max_directories: 9,
        max_entries: 99,
        follow_directory_symlinks: false,
        prune_hidden_directories: false,
    };
    let remove = |force| Remove {
        recursive: true,
        force,
        links,
    };
    vec![
        word(clerk.read(path, links).map(drop)),
        word(clerk.metadata(path, links).map(drop)),
        word(clerk.canonicalize(path).map(drop)),
        word(clerk.read_directory(path).map(drop)),
        word(clerk.walk(path, options).map(drop)),
        word(clerk.copy(path, &elsewhere.join("copy"), true)),
        word(clerk.remove(path, remove(false))),
        word(clerk.remove(path, remove(true))),
        word(clerk.write(path, b"x", links)),
        word(clerk.create_directory(path, true, links)),
        word(clerk.create_directory(path, false, links)),
        word(clerk.copy(&elsewhere.join("empty"), path, true)),
    ]
}

#[test]
fn what_is_masked_is_told_as_what_it_means() {
    const ACCESS: &str = "Permission denied (os error 13)";
    const NOENT: &str = "No such file or directory (os error 2)";
    const ROFS: &str = "Read-only file system (os error 30)";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    for name in ["denied", "absent", "elsewhere/empty", "plain"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    std::fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink(&root, at("link")).unwrap();
    let masks = Masks {
        denied: vec![at("denied"), at("file")],
        absent: vec![at("absent")],
        held: Vec::new(),
    };
    let (there, _serving) = masked(Limits::default(), masks);
    for links in [Links::Follow, Links::Refuse] {
        for name in ["denied", "file"] {
            let said = said(&there, &at(name), links, &at("elsewhere"));
            assert_eq!(said, [ACCESS; 12], "{name}");
        }
        let said = said(&there, &at("absent"), links, &at("elsewhere"));
        let missing = [NOENT; 7].into_iter();
        let expected = missing.chain(["done"]).chain([ROFS; 4]);
        assert_eq!(said, expected.collect::<Vec<_>>());
    }
    // By way of a link it is the same, unless links are refused,
    let there_too = at("link/denied");
    let metadata = |path: &Path, links| there.metadata(path, links).map_err(|e| e.to_string());
    assert_eq!(metadata(&there_too, Links::Follow), Err(ACCESS.to_owned()));
    let refused = metadata(&there_too, Links::Refuse);
    assert_eq!(refused, Err("path contains a symbolic link".to_owned()));
    // what is removed is a link itself,
    std::os::unix::fs::symlink(at("denied"), at("to denied")).unwrap();
    let how = Remove {
        recursive: true,
        force: false,
        links: Links::Follow,
    };
    there.remove(&at("to denied"), how).unwrap();
    // and nothing else is meant by it.
    assert!(metadata(&at("plain"), Links::Follow).is_ok());
    for name in ["denied", "absent", "file"] {
        assert!(at(name).exists(), "{name}");
    }
}

#[test]
fn what_only_holds_a_place_is_missing_until_it_is_made() {
    const NOENT: &str = "No such file or directory (os error 2)";
    const ISDIR: &str = "Is a directory (os error 21)";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    let here = |held| {
        Clerk::Here(Here {
            files: Files::default(),
            held,
            is_held: is_empty,
        })
    };
    let there = |held| {
        let masks = Masks {
            held,
            ..Masks::default()
        };
        masked(Limits::default(), masks).0
    };
    std::fs::create_dir_all(at("elsewhere/empty")).unwrap();
    std::os::unix::fs::symlink(&root, at("link")).unwrap();
    let long_ago = std::time::UNIX_EPOCH;
    let age = || std::fs::metadata(at("a/held")).unwrap().modified().unwrap();
    for clerk in [&here as &dyn Fn(_) -> _, &there] {
        let clerk = clerk(vec![at("nowhere/held"), at("a/held")]);
        for (path, links) in [
            (at("a/held"), Links::Follow),
            (at("a/held"), Links::Refuse),
            (at("link/a/held"), Links::Follow),
        ] {
            std::fs::create_dir_all(at("a/held")).unwrap();
            let opened = std::fs::File::open(at("a/held")).unwrap();
            opened.set_modified(long_ago).unwrap();
            drop(opened);
            let said = said(&clerk, &path, links, &at("elsewhere"));
            let missing = [NOENT; 7].into_iter();
            // It is a directory when it is to be a file, and fine when it is to be one.
            let expected = missing.chain(["done", ISDIR]).chain(["done"; 3]);
            assert_eq!(said, expected.collect::<Vec<_>>(), "{path:?}");
            assert!(age() > long_ago, "nobody takes it for its own any more");
        }
        let options = WalkOptions {
            max_depth: 9,
            max_directories: 9,
            // As many as are to be found.
            max_entries: 1,
            follow_directory_symlinks: false,
            prune_hidden_directories: false,
        };
        std::fs::write(at("a/zzz"), "").unwrap();
        clerk.copy(&at("a"), &at("b"), true).unwrap();
        for name in ["a", "b", "link/a"] {
            let listed = clerk.read_directory(&at(name)).unwrap();
            let names: Vec<_> = listed.iter().map(|entry| &entry.name).collect();
            assert_eq!(names, ["zzz"]);
            let walk = clerk.walk(&at(name), options).unwrap();
            assert_eq!(walk.entries.len(), 1);
            assert_eq!(walk.entries[0].path, at(name).join("zzz"));
            assert!(!walk.truncated && walk.errors.is_empty());
        }
        // What somebody has put something into is there.
        std::fs::write(at("a/held/x"), "").unwrap();
        clerk.metadata(&at("a/held"), Links::Follow).unwrap();
        assert_eq!(clerk.read_directory(&at("a")).unwrap().len(), 2);
        std::fs::remove_dir_all(at("a")).unwrap();
        std::fs::remove_dir_all(at("b")).unwrap();
    }
}
