//! The receiver of all operations, and its limits.

use serde::{Deserialize, Serialize};

/// The file operations with their limits. Holds no open files.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Files {
    pub(crate) limits: Limits,
    pub(crate) symlink_check: SymlinkCheck,
}

/// How paths with symbolic links are detected when they are to be rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymlinkCheck {
    /// With `openat2`; falls back to `Walk` if the kernel lacks it or a seccomp filter blocks it.
    #[default]
    Kernel,
    /// By opening the path component by component.
    Walk,
}

impl Files {
    /// Operations with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Files {
            limits,
            symlink_check: SymlinkCheck::default(),
        }
    }

    /// Selects how symbolic links are detected.
    #[must_use]
    pub fn with_symlink_check(self, symlink_check: SymlinkCheck) -> Self {
        Files {
            symlink_check,
            ..self
        }
    }
}

/// Limits of the file operations. The defaults are the shipped values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The largest file that is read as a whole, in bytes.
    pub file_bytes: u64,
    /// The largest block that is read from an open file, in bytes.
    pub block_bytes: u64,
    /// The largest number of entries of a directory that is listed.
    pub directory_entries: usize,
    /// The largest `max_depth` of a walk.
    pub walk_depth: u64,
    /// The largest `max_directories` of a walk.
    pub walk_directories: u64,
    /// The largest `max_entries` of a walk.
    pub walk_entries: u64,
    /// The largest encoded result of a walk, in bytes.
    pub walk_bytes: usize,
    /// The deepest directory tree that is copied. Each level needs three descriptors.
    pub copy_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 512 * 1024 * 1024,
            block_bytes: 1024 * 1024,
            directory_entries: 50_000,
            walk_depth: 64,
            walk_directories: 10_000,
            walk_entries: 50_000,
            walk_bytes: 4 * 1024 * 1024,
            copy_depth: 128,
        }
    }
}
