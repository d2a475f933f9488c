//! Messages between an executor and its worker.
//!
//! A request is a tuple of [`Files`](crate::Files), [`PathMasks`](crate::PathMasks) and [`Call`]; a
//! response is a `Result<Response, FilesError>`. A message starts with a version byte, because the
//! program on disk, from which the worker is started, may have been replaced by another version.

use std::path::PathBuf;

use outpost_types::{FileOp, FileReply, PathUse, Symlinks, UsedPath, path_bytes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// A call to the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Call {
    Perform(FileOp),
    /// Opens a regular file, whose descriptor comes with the response.
    Open {
        #[serde(with = "path_bytes")]
        path: PathBuf,
        symlinks: Symlinks,
        mode: OpenMode,
    },
    /// Starts to replace a file. The descriptor of the new file comes with the response.
    CreateStream {
        #[serde(with = "path_bytes")]
        path: PathBuf,
    },
    /// Commits the stream that was created last.
    Commit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OpenMode {
    Read,
    /// Creates the file if it does not exist.
    Write,
}

/// The response to a successful call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response {
    Reply(FileReply),
    /// The file's descriptor comes with the message.
    File,
}

impl Call {
    pub(crate) fn used_paths(&self) -> Vec<UsedPath<'_>> {
        match self {
            Self::Perform(op) => op.used_paths(),
            Self::Open {
                path,
                symlinks,
                mode,
            } => {
                let path_use = match mode {
                    OpenMode::Read => PathUse::Target,
                    OpenMode::Write => PathUse::Create,
                };
                vec![UsedPath {
                    path,
                    symlinks: *symlinks,
                    path_use,
                }]
            }
            Self::CreateStream { path } => vec![UsedPath {
                path,
                symlinks: Symlinks::Follow,
                path_use: PathUse::Create,
            }],
            Self::Commit => Vec::new(),
        }
    }
}

pub(crate) fn encode(message: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_extend(message, vec![VERSION]).ok()
}

/// None if the message has another version, is incomplete or has bytes left over.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (&VERSION, bytes) = bytes.split_first()? else {
        return None;
    };
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use outpost_types::{
        DirectoryEntry, EntryKind, FileMetadata, WalkEntry, WalkError, WalkOptions, WalkResult,
    };
    use rustix::io::Errno;

    use super::*;
    use crate::{Files, FilesError, Limits, PathMasks, SymlinkCheck};

    fn calls() -> Vec<Call> {
        let path = PathBuf::from(OsStr::from_bytes(b"/caf\xe9"));
        let options = WalkOptions {
            max_depth: 1,
            max_directories: 2,
            max_entries: 3,
            follow_directory_symlinks: true,
            prune_hidden_directories: false,
        };
        let ops = [
            FileOp::CreateDirectory {
                path: path.clone(),
                recursive: true,
                symlinks: Symlinks::Follow,
            },
            FileOp::GetMetadata {
                path: path.clone(),
                symlinks: Symlinks::Reject,
            },
            FileOp::Canonicalize { path: path.clone() },
            FileOp::ReadDirectory {
                path: path.clone(),
                broken_links: true,
            },
            FileOp::Walk {
                path: path.clone(),
                options,
            },
            FileOp::Remove {
                path: path.clone(),
                recursive: true,
                force: false,
                symlinks: Symlinks::Reject,
            },
            FileOp::Copy {
                source: path.clone(),
                destination: "/b".into(),
                recursive: true,
            },
        ];
        let open = |mode| Call::Open {
            path: path.clone(),
            symlinks: Symlinks::Reject,
            mode,
        };
        let mut calls: Vec<_> = ops.into_iter().map(Call::Perform).collect();
        calls.extend([
            open(OpenMode::Read),
            open(OpenMode::Write),
            Call::CreateStream { path: path.clone() },
            Call::Commit,
        ]);
        calls
    }

    #[test]
    fn calls_round_trip_and_truncated_ones_are_rejected() {
        let limits = Limits {
            file_bytes: 7,
            copy_depth: 9,
            ..Limits::default()
        };
        let files = Files::new(limits).with_symlink_check(SymlinkCheck::Walk);
        let masks = PathMasks {
            denied: vec![OsStr::from_bytes(b"/\xff").into(), "/y".into()],
            absent: vec!["/z".into()],
            placeholders: vec!["/w".into()],
        };
        for call in calls() {
            let bytes = encode(&(&files, &masks, &call)).unwrap();
            let decoded: (Files, PathMasks, Call) = decode(&bytes).unwrap();
            assert_eq!((&decoded.1, &decoded.2), (&masks, &call));
            assert_eq!(decoded.0.limits, limits);
            assert_eq!(decoded.0.symlink_check, SymlinkCheck::Walk);
            for length in 0..bytes.len() {
                let truncated = decode::<(Files, PathMasks, Call)>(&bytes[..length]);
                assert!(truncated.is_none(), "{call:?}");
            }
        }
    }

    fn replies() -> Vec<FileReply> {
        let metadata = FileMetadata {
            is_directory: false,
            is_file: true,
            is_symlink: true,
            size: 5,
            created_at_ms: -6,
            modified_at_ms: 7,
        };
        let entry = |file_name: &str, is_broken_link| DirectoryEntry {
            file_name: file_name.to_owned(),
            is_directory: true,
            is_file: false,
            is_broken_link,
        };
        let found = |path: &str, kind| WalkEntry {
            path: path.into(),
            kind,
        };
        let walk = WalkResult {
            entries: vec![
                found("/a", EntryKind::File),
                found("/b", EntryKind::Directory),
            ],
            errors: vec![WalkError {
                path: "/c".into(),
                message: "no".into(),
            }],
            truncated: true,
        };
        vec![
            FileReply::Done,
            FileReply::Metadata(metadata),
            FileReply::Path("/a/b".into()),
            FileReply::Entries(vec![entry("a", true), entry("b", false)]),
            FileReply::Walk(walk),
        ]
    }

    #[test]
    fn responses_round_trip() {
        let replies = replies().into_iter().map(Response::Reply);
        for response in replies.chain([Response::File]) {
            let bytes = encode(&Ok::<_, FilesError>(&response)).unwrap();
            let decoded: Result<Response, FilesError> = decode(&bytes).unwrap();
            assert_eq!(decoded.unwrap(), response);
        }
    }

    #[test]
    fn errors_keep_their_kind_and_message() {
        let errors = [
            FilesError::from(Errno::ROFS),
            FilesError::SymbolicLink,
            FilesError::NotRegularFile,
            FilesError::FileTooLarge { limit: 1 },
            FilesError::BlockLength { limit: 2 },
            FilesError::TooManyEntries { limit: 3 },
            FilesError::ZeroWalkLimit,
            FilesError::WalkLimitsTooHigh {
                depth: 1,
                directories: 2,
                entries: 3,
            },
            FilesError::CopyNeedsRecursive,
            FilesError::CopyIntoItself,
            FilesError::CopyUnsupported,
            FilesError::TooDeep { limit: 4 },
            FilesError::Moved,
            FilesError::NoReply,
            FilesError::Timeout,
        ];
        for error in errors {
            let expected = (error.kind(), error.to_string());
            let bytes = encode(&Err::<Response, _>(error)).unwrap();
            let decoded: Result<Response, FilesError> = decode(&bytes).unwrap();
            let decoded = decoded.unwrap_err();
            assert_eq!((decoded.kind(), decoded.to_string()), expected);
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        let good = encode(&Ok::<_, FilesError>(Response::File)).unwrap();
        let other_version: Vec<_> = [VERSION + 1]
            .into_iter()
            .chain(good[1..].iter().copied())
            .collect();
        let longer: Vec<_> = good.iter().copied().chain([0]).collect();
        for bytes in [&[][..], &[VERSION], &[VERSION, 99], &other_version, &longer] {
            assert!(decode::<Result<Response, FilesError>>(bytes).is_none());
        }
    }
}
