//! FIFOs, sockets and devices.

use std::os::unix::net::UnixListener;
use std::path::Path;

use outpost_files::Files;
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, Remove, rejected, with_each_symlink_check};

fn message(path: &Path) -> String {
    format!("path `{}` is not a file", path.display())
}

fn assert_all_rejected(files: &Files, path: &Path, symlinks: Symlinks) {
    let message = &message(path);
    rejected(files.read(path, symlinks), message);
    rejected(files.open(path, symlinks), message);
    rejected(files.write(path, b"x", symlinks), message);
    rejected(files.create_stream(path), message);
    rejected(
        files.copy(path, &path.with_extension("copy"), false),
        "fs/copy only supports regular files, directories, and symlinks",
    );
}

#[test]
fn special_files_are_rejected_unopened() {
    let folder = Folder::new();
    let fifo = folder.fifo("fifo");
    let socket = folder.path("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for files in with_each_symlink_check() {
        for path in [&fifo, &socket, Path::new("/dev/null")] {
            if path.starts_with("/dev") {
                let message = &message(path);
                // No copy: it would create a file in /dev.
                rejected(files.read(path, Symlinks::Reject), message);
                rejected(files.write(path, b"x", Symlinks::Reject), message);
                rejected(files.create_stream(path), message);
                continue;
            }
            assert_all_rejected(&files, path, Symlinks::Follow);
            assert_all_rejected(&files, path, Symlinks::Reject);
        }
    }
    assert_eq!(folder.names("."), ["fifo", "socket"]);
}

#[test]
fn fifo_with_reader_receives_nothing() {
    let folder = Folder::new();
    let fifo = folder.fifo("fifo");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let reader = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap();
    let files = Files::default();
    rejected(files.write(&fifo, b"x", Symlinks::Follow), &message(&fifo));
    let source = folder.file("a", "x");
    rejected(
        files.copy(&source, &fifo, false),
        "path is not a regular file",
    );
    let mut buffer = [0; 8];
    assert_eq!(
        rustix::io::read(&reader, &mut buffer),
        Ok(0),
        "no writer ever opened it"
    );
}

#[test]
fn special_files_have_metadata_and_can_be_removed() {
    let folder = Folder::new();
    let files = Files::default();
    let fifo = folder.fifo("fifo");
    let found = files.metadata(&fifo, Symlinks::Follow).unwrap();
    assert!(!found.is_file && !found.is_directory && !found.is_symlink);
    let options = Remove {
        recursive: true,
        force: false,
        symlinks: Symlinks::Reject,
    };
    files.remove(&fifo, options).unwrap();
    assert!(folder.names(".").is_empty());
}
