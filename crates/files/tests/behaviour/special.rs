//! What is no regular file is refused, at once and untouched.

use std::os::unix::net::UnixListener;
use std::path::Path;

use outpost_files::{Files, Links};

use crate::support::{Folder, by_all_means, refused};

const WORDS: &str = "path is not a regular file";

fn refuse_everything(files: &Files, path: &Path, links: Links) {
    refused(files.read(path, links), WORDS);
    refused(files.open(path, links), WORDS);
    refused(files.write(path, b"x", links), WORDS);
    refused(files.create_stream(path), WORDS);
    refused(
        files.copy(path, &path.with_extension("copy"), false),
        "fs/copy only supports regular files, directories, and symlinks",
    );
}

#[test]
fn pipes_devices_and_sockets() {
    let folder = Folder::new();
    let fifo = folder.fifo("fifo");
    let socket = folder.path("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for files in by_all_means() {
        for path in [&fifo, &socket, Path::new("/dev/null")] {
            if path.starts_with("/dev") {
                // A copy beside it would be a file in /dev.
                refused(files.read(path, Links::Refuse), WORDS);
                refused(files.write(path, b"x", Links::Refuse), WORDS);
                refused(files.create_stream(path), WORDS);
                continue;
            }
            refuse_everything(&files, path, Links::Follow);
            refuse_everything(&files, path, Links::Refuse);
        }
    }
    assert_eq!(folder.names("."), ["fifo", "socket"]);
}

#[test]
fn a_pipe_that_is_read_gets_nothing() {
    let folder = Folder::new();
    let fifo = folder.fifo("fifo");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let reader = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap();
    let files = Files::default();
    refused(files.write(&fifo, b"x", Links::Follow), WORDS);
    let source = folder.file("a", "x");
    refused(files.copy(&source, &fifo, false), WORDS);
    let mut buffer = [0; 8];
    assert_eq!(
        rustix::io::read(&reader, &mut buffer),
        Ok(0),
        "nobody has written"
    );
}

#[test]
fn they_have_metadata_and_can_be_removed() {
    let folder = Folder::new();
    let files = Files::default();
    let fifo = folder.fifo("fifo");
    let found = files.metadata(&fifo, Links::Follow).unwrap();
    assert!(!found.is_file && !found.is_directory && !found.is_symlink);
    let how = outpost_files::Remove {
        recursive: true,
        force: false,
        links: Links::Refuse,
    };
    files.remove(&fifo, how).unwrap();
    assert!(folder.names(".").is_empty());
}
