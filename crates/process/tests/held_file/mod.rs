//! Simulates a file system that does not answer.
//!
//! A write lease (`F_SETLEASE`, `fcntl(2)`) delays every open of a file, also by `execve`, until its
//! holder gives it up. The kernel breaks it after `/proc/sys/fs/lease-break-time`, 45 s. The code is in
//! this crate because `unsafe` is allowed here, and is compiled into the tests that need it.

#![expect(unsafe_code, reason = "sets a lease")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The signal for the holder of a lease, from `fcntl.h`.
const F_SETSIG: libc::c_int = 10;

/// A program whose start hangs until this is dropped.
pub(crate) struct HeldFile {
    _lease: File,
    directory: TempDir,
}

impl HeldFile {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("create a directory");
        let path = directory.path().join("program");
        std::fs::copy("/bin/true", &path).expect("copy a program");
        let file = File::open(&path).expect("open the copy");
        // The kernel notifies the holder with SIGIO, which would kill it; SIGURG is ignored.
        set(&file, F_SETSIG, libc::SIGURG);
        set(&file, libc::F_SETLEASE, libc::F_WRLCK);
        Self {
            _lease: file,
            directory,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory().join("program")
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

fn set(file: &File, command: libc::c_int, value: libc::c_int) {
    // SAFETY: both commands take a number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    assert_eq!(result, 0, "fcntl: {}", io::Error::last_os_error());
}
