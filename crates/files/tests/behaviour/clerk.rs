//! Operations that somebody else does, at the other end of a line.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use outpost_files::{Clerk, Files, FilesError, Limits, Line, Links, Remove, WalkOptions, serve};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

fn sockets() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// A clerk, and who does its work in a thread.
fn clerk(limits: Limits) -> (Clerk, JoinHandle<()>) {
    let (ours, theirs) = sockets();
    let serving = std::thread::spawn(move || serve(theirs));
    let line = Line::asking(ours, LONG, ()).unwrap();
    (Clerk::Confined(line, Files::new(limits)), serving)
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn it_does_what_is_done_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let here = Clerk::Here(Files::default());
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
    let there = Clerk::Confined(Line::asking(ours, within, ()).unwrap(), Files::default());
    let path = Path::new("/");
    let silent = there.canonicalize(path);
    assert!(matches!(silent, Err(FilesError::Slow)), "{silent:?}");
    drop(theirs);
    let gone = there.canonicalize(path);
    assert!(matches!(gone, Err(FilesError::Unanswered)), "{gone:?}");
}
