//! `fs/*`: files and folders where the processes run.
//!
//! - `content` is about whole files, `read_file_answer` writes one that is long; `handle` about files that stay open
//! - `stream` replaces a file in blocks; `block_frame` writes the messages that blocks are in
//! - `operation` has the methods that are file operations
//! - `fs_path` is a path as these methods take it

mod block_frame;
mod content;
mod fs_path;
mod handle;
mod operation;
mod read_file_answer;
mod stream;

pub use block_frame::{encode_read_block, encode_write_block};
pub use content::{FsReadFileParams, FsReadFileResult, FsWriteFileParams};
pub use fs_path::FsPath;
pub use handle::{FsCloseParams, FsOpenParams, FsOpenResult, FsReadBlockParams, FsReadBlockResult};
pub use operation::{
    FileRequest, FileRequestError, FileResult, FsCanonicalizeParams, FsCanonicalizeResult,
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsReadDirectoryParams,
    FsReadDirectoryResult, FsRemoveParams, FsWalkParams,
};
pub use read_file_answer::ReadFileAnswer;
pub use stream::{FsCommitParams, FsCreateStreamParams, FsWriteBlockParams};
