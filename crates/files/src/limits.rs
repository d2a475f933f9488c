//! Every bound.

/// How much an operation may take. The defaults are what ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest file that is read as a whole, in bytes.
    pub file_bytes: u64,
    /// The largest block that is read of an open file, in bytes.
    pub block_bytes: u64,
    /// How many names a directory may have that is read.
    pub directory_entries: usize,
    /// How deep a walk may be asked to go,
    pub walk_depth: u64,
    /// how many directories it may be asked to look into,
    pub walk_directories: u64,
    /// and how many names it may be asked to look at.
    pub walk_entries: u64,
    /// How many bytes the outcome of a walk may take when it is written down.
    pub walk_bytes: usize,
    /// How deep a tree may be that is copied: each level costs three descriptors.
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
