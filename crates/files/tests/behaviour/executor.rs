//! Executors in this process and behind a worker socket.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use outpost_files::{
    FileExecutor, Files, FilesError, InProcess, Limits, PathMasks, Sandboxed, WorkerSocket,
    run_worker,
};
use outpost_types::{
    DirectoryEntry, FileOp, FileReply, FsCanonicalizeParams, FsCopyParams, FsCreateDirectoryParams,
    FsGetMetadataParams, FsReadDirectoryParams, FsReadDirectoryResult, FsRemoveParams,
    FsWalkParams, PathUri, Symlinks, WalkOptions, WalkResult,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::support::FilesExt as _;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

pub(crate) const OPTIONS: WalkOptions = WalkOptions {
    max_depth: 9,
    max_directories: 9,
    max_entries: 99,
    follow_directory_symlinks: false,
    prune_hidden_directories: false,
};

fn sockets() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// An executor whose worker runs in a thread.
pub(crate) fn sandboxed(limits: Limits) -> (FileExecutor, JoinHandle<()>) {
    masked(limits, PathMasks::default())
}

fn masked(limits: Limits, masks: PathMasks) -> (FileExecutor, JoinHandle<()>) {
    let (client, worker) = sockets();
    let thread = std::thread::spawn(move || run_worker(worker, is_empty));
    let socket = WorkerSocket::client(client, LONG, ()).unwrap();
    let executor = FileExecutor::Sandboxed(Sandboxed {
        socket,
        files: Files::new(limits),
        masks,
    });
    (executor, thread)
}

/// Tells a placeholder by its lack of content.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut names| names.next().is_none())
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn create_directory(path: &Path, recursive: bool, symlinks: Symlinks) -> FileOp {
    FileOp::CreateDirectory(FsCreateDirectoryParams {
        path: PathUri::from_path(path),
        recursive,
        symlinks,
    })
}

fn get_metadata(path: &Path, symlinks: Symlinks) -> FileOp {
    let path = PathUri::from_path(path);
    FileOp::GetMetadata(FsGetMetadataParams { path, symlinks })
}

fn canonicalize(path: &Path) -> FileOp {
    let path = PathUri::from_path(path);
    FileOp::Canonicalize(FsCanonicalizeParams { path })
}

pub(crate) fn read_directory(path: &Path) -> FileOp {
    FileOp::ReadDirectory(FsReadDirectoryParams {
        path: PathUri::from_path(path),
        broken_links: true,
    })
}

pub(crate) fn walk(path: &Path, options: WalkOptions) -> FileOp {
    let path = PathUri::from_path(path);
    FileOp::Walk(FsWalkParams { path, options })
}

fn remove(path: &Path, force: bool, symlinks: Symlinks) -> FileOp {
    FileOp::Remove(FsRemoveParams {
        path: PathUri::from_path(path),
        recursive: true,
        force,
        symlinks,
    })
}

fn copy(source: &Path, destination: &Path) -> FileOp {
    FileOp::Copy(FsCopyParams {
        source_path: PathUri::from_path(source),
        destination_path: PathUri::from_path(destination),
        recursive: true,
    })
}

fn perform(executor: &FileExecutor, op: FileOp) -> Result<FileReply, String> {
    executor.perform(op).map_err(|error| error.to_string())
}

#[test]
fn sandboxed_executor_replies_like_one_in_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let in_process = FileExecutor::in_process(Files::default());
    let (executor, worker) = sandboxed(Limits::default());
    let create = create_directory(&at("a/b"), true, Symlinks::Follow);
    executor.perform(create).unwrap();
    // More than the socket's buffer holds.
    let large = vec![7; 3 << 20];
    executor
        .write(&PathUri::from_path(&at("a/b/f")), &large, Symlinks::Reject)
        .unwrap();
    assert!(
        executor
            .read(&PathUri::from_path(&at("a/b/f")), Symlinks::Follow)
            .unwrap()
            == large
    );
    executor.perform(copy(&at("a"), &at("c"))).unwrap();
    std::os::unix::fs::symlink("c", at("link")).unwrap();
    let options = WalkOptions {
        follow_directory_symlinks: true,
        ..OPTIONS
    };
    for path in [at("link"), at("a"), at("missing")] {
        let replies = |executor: &FileExecutor| {
            (
                perform(executor, get_metadata(&path, Symlinks::Follow)),
                perform(executor, canonicalize(&path)),
                perform(executor, read_directory(&path)),
                perform(executor, walk(&path, options)),
                executor
                    .read(&PathUri::from_path(&path), Symlinks::Reject)
                    .map_err(|error| error.to_string()),
            )
        };
        assert_eq!(replies(&executor), replies(&in_process), "{path:?}");
    }
    let removal = remove(&at("c"), false, Symlinks::Follow);
    executor.perform(removal).unwrap();
    assert!(!at("c").exists());
    drop(executor);
    worker.join().unwrap();
}

#[test]
fn listing_longer_than_a_packet_arrives_whole() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1500 {
        let name = format!("{number:0>200}");
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let (executor, _worker) = sandboxed(Limits::default());
    let listed = executor.perform(read_directory(folder.path())).unwrap();
    let expected = Files::default().read_directory(folder.path()).unwrap();
    let entries = expected;
    assert_eq!(
        listed,
        FileReply::Entries(FsReadDirectoryResult { entries })
    );
}

#[test]
fn worker_applies_the_limits_of_the_executor() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::write(folder.path().join(name), "12345").unwrap();
    }
    let (executor, _worker) = sandboxed(Limits {
        file_bytes: 4,
        directory_entries: 1,
        ..Limits::default()
    });
    let read = executor.read(
        &PathUri::from_path(&folder.path().join("a")),
        Symlinks::Follow,
    );
    assert!(matches!(read, Err(FilesError::FileTooLarge { limit: 4 })));
    let listed = executor.perform(read_directory(folder.path()));
    assert!(matches!(
        listed,
        Err(FilesError::TooManyEntries { limit: 1 })
    ));
}

#[test]
fn stream_is_committed_by_the_worker_or_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let (executor, worker) = sandboxed(Limits::default());
    let writer = executor.create_stream(&PathUri::from_path(&path)).unwrap();
    writer.write_block(3, b"def").unwrap();
    writer.write_block(0, b"abc").unwrap();
    assert!(!path.exists());
    writer.commit().unwrap();
    worker.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");

    let (executor, worker) = sandboxed(Limits::default());
    let writer = executor.create_stream(&PathUri::from_path(&path)).unwrap();
    writer.write_block(0, b"x").unwrap();
    drop(writer);
    worker.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
    assert_eq!(names(folder.path()), 1);
}

#[test]
fn silent_worker_times_out_and_closed_socket_gives_no_reply() {
    let (client, worker) = sockets();
    let timeout = Duration::from_millis(10);
    let executor = FileExecutor::Sandboxed(Sandboxed {
        socket: WorkerSocket::client(client, timeout, ()).unwrap(),
        files: Files::default(),
        masks: PathMasks::default(),
    });
    let path = Path::new("/");
    let silent = executor.perform(canonicalize(path));
    assert!(matches!(silent, Err(FilesError::Timeout)), "{silent:?}");
    drop(worker);
    let closed = executor.perform(canonicalize(path));
    assert!(matches!(closed, Err(FilesError::NoReply)), "{closed:?}");
}

/// The outcome of every operation on a path: "done" or the error message.
fn outcomes(
    executor: &FileExecutor,
    path: &Path,
    symlinks: Symlinks,
    elsewhere: &Path,
) -> Vec<String> {
    let outcome = |result: Result<(), FilesError>| match result {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    };
    let perform = |op| outcome(executor.perform(op).map(drop));
    vec![
        outcome(executor.read(&PathUri::from_path(path), symlinks).map(drop)),
        perform(get_metadata(path, symlinks)),
        perform(canonicalize(path)),
        perform(read_directory(path)),
        perform(walk(path, OPTIONS)),
        perform(copy(path, &elsewhere.join("copy"))),
        perform(remove(path, false, symlinks)),
        perform(remove(path, true, symlinks)),
        outcome(executor.write(&PathUri::from_path(path), b"x", symlinks)),
        perform(create_directory(path, true, symlinks)),
        perform(create_directory(path, false, symlinks)),
        perform(copy(&elsewhere.join("empty"), path)),
    ]
}

#[test]
fn masked_paths_are_reported_by_their_meaning() {
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
    let masks = PathMasks {
        denied: vec![at("denied"), at("file")],
        absent: vec![at("absent")],
        placeholders: Vec::new(),
    };
    let (executor, _worker) = masked(Limits::default(), masks);
    for symlinks in [Symlinks::Follow, Symlinks::Reject] {
        for name in ["denied", "file"] {
            let outcomes = outcomes(&executor, &at(name), symlinks, &at("elsewhere"));
            assert_eq!(outcomes, [ACCESS; 12], "{name}");
        }
        let outcomes = outcomes(&executor, &at("absent"), symlinks, &at("elsewhere"));
        let missing = [NOENT; 7].into_iter();
        let expected = missing.chain(["done"]).chain([ROFS; 4]);
        assert_eq!(outcomes, expected.collect::<Vec<_>>());
    }
    // A path through a symbolic link is masked too, unless links are rejected.
    let through_link = at("link/denied");
    let metadata = |path: &Path, symlinks| perform(&executor, get_metadata(path, symlinks));
    assert_eq!(
        metadata(&through_link, Symlinks::Follow),
        Err(ACCESS.to_owned())
    );
    assert_eq!(
        metadata(&through_link, Symlinks::Reject),
        Err("path contains a symbolic link".to_owned())
    );
    // A link to a masked path can be removed.
    std::os::unix::fs::symlink(at("denied"), at("to denied")).unwrap();
    let removal = remove(&at("to denied"), false, Symlinks::Follow);
    executor.perform(removal).unwrap();
    // Other paths are not affected.
    assert!(metadata(&at("plain"), Symlinks::Follow).is_ok());
    for name in ["denied", "absent", "file"] {
        assert!(at(name).exists(), "{name}");
    }
}

#[test]
fn placeholder_counts_as_missing_until_it_is_created() {
    const NOENT: &str = "No such file or directory (os error 2)";
    const ISDIR: &str = "Is a directory (os error 21)";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    let in_process = |placeholders| {
        FileExecutor::InProcess(InProcess {
            files: Files::default(),
            placeholders,
            is_placeholder: is_empty,
        })
    };
    let sandboxed = |placeholders| {
        let masks = PathMasks {
            placeholders,
            ..PathMasks::default()
        };
        masked(Limits::default(), masks).0
    };
    std::fs::create_dir_all(at("elsewhere/empty")).unwrap();
    std::os::unix::fs::symlink(&root, at("link")).unwrap();
    let long_ago = std::time::UNIX_EPOCH;
    let modified = || std::fs::metadata(at("a/held")).unwrap().modified().unwrap();
    for new_executor in [&in_process as &dyn Fn(_) -> _, &sandboxed] {
        let executor = new_executor(vec![at("nowhere/held"), at("a/held")]);
        for (path, symlinks) in [
            (at("a/held"), Symlinks::Follow),
            (at("a/held"), Symlinks::Reject),
            (at("link/a/held"), Symlinks::Follow),
        ] {
            std::fs::create_dir_all(at("a/held")).unwrap();
            let opened = std::fs::File::open(at("a/held")).unwrap();
            opened.set_modified(long_ago).unwrap();
            drop(opened);
            let outcomes = outcomes(&executor, &path, symlinks, &at("elsewhere"));
            let missing = [NOENT; 7].into_iter();
            // Writing a file fails because of the directory; creating a directory succeeds.
            let expected = missing.chain(["done", ISDIR]).chain(["done"; 3]);
            assert_eq!(outcomes, expected.collect::<Vec<_>>(), "{path:?}");
            assert!(modified() > long_ago, "it is no placeholder any more");
        }
        let options = WalkOptions {
            // As many as the walk finds.
            max_entries: 1,
            ..OPTIONS
        };
        std::fs::write(at("a/zzz"), "").unwrap();
        executor.perform(copy(&at("a"), &at("b"))).unwrap();
        let list = |path: &Path| -> Vec<DirectoryEntry> {
            let reply = executor.perform(read_directory(path)).unwrap();
            reply.try_into().unwrap()
        };
        for name in ["a", "b", "link/a"] {
            let listed = list(&at(name));
            let names: Vec<_> = listed.iter().map(|entry| &entry.file_name).collect();
            assert_eq!(names, ["zzz"]);
            let reply = executor.perform(walk(&at(name), options)).unwrap();
            let walk: WalkResult = reply.try_into().unwrap();
            assert_eq!(walk.entries.len(), 1);
            assert_eq!(walk.entries[0].path, at(name).join("zzz"));
            assert!(!walk.truncated && walk.errors.is_empty());
        }
        // A directory with content is no placeholder.
        std::fs::write(at("a/held/x"), "").unwrap();
        let metadata = get_metadata(&at("a/held"), Symlinks::Follow);
        executor.perform(metadata).unwrap();
        assert_eq!(list(&at("a")).len(), 2);
        std::fs::remove_dir_all(at("a")).unwrap();
        std::fs::remove_dir_all(at("b")).unwrap();
    }
}
