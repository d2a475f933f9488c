//! What came of it.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::parts::{Parts, Rest};
use crate::{DirectoryEntry, EntryKind, FilesError, Metadata, Walk, WalkEntry, WalkError};

/// What came of an operation that didn't fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    /// It comes along.
    File,
    Metadata(Metadata),
    Path(PathBuf),
    Entries(Vec<DirectoryEntry>),
    Walk(Walk),
}

/// An answer or a failure, written down.
pub(super) fn encode(outcome: &Result<Answer, FilesError>) -> Vec<u8> {
    let mut parts = Parts::default();
    match outcome {
        Err(error) => {
            parts.byte(0);
            put_error(&mut parts, error);
        }
        Ok(Answer::Done) => parts.byte(1),
        Ok(Answer::File) => parts.byte(2),
        Ok(Answer::Metadata(found)) => {
            parts.byte(3);
            parts.flag(found.is_directory);
            parts.flag(found.is_file);
            parts.flag(found.is_symlink);
            parts.number(found.size);
            parts.flag(found.created_at_ms.is_some());
            parts.signed(found.created_at_ms.unwrap_or(0));
            parts.signed(found.modified_at_ms);
        }
        Ok(Answer::Path(path)) => {
            parts.byte(4);
            parts.path(path);
        }
        Ok(Answer::Entries(entries)) => {
            parts.byte(5);
            for entry in entries {
                parts.flag(entry.is_directory);
                parts.flag(entry.is_file);
                parts.flag(entry.is_broken_link);
                parts.bytes(entry.name.as_encoded_bytes());
            }
        }
        Ok(Answer::Walk(walk)) => {
            parts.byte(6);
            parts.flag(walk.truncated);
            parts.number(walk.entries.len() as u64);
            for entry in &walk.entries {
                parts.flag(entry.kind == EntryKind::Directory);
                parts.path(&entry.path);
            }
            for error in &walk.errors {
                parts.path(&error.path);
                parts.bytes(error.message.as_bytes());
            }
        }
    }
    parts.0
}

/// None if it is something else or was cut off.
pub(super) fn decode(bytes: &[u8]) -> Option<Result<Answer, FilesError>> {
    let mut rest = Rest(bytes);
    let outcome = match rest.byte()? {
        0 => Err(take_error(&mut rest)?),
        1 => Ok(Answer::Done),
        2 => Ok(Answer::File),
        3 => Ok(Answer::Metadata(take_metadata(&mut rest)?)),
        4 => Ok(Answer::Path(rest.path()?)),
        5 => Ok(Answer::Entries(take_entries(&mut rest)?)),
        6 => Ok(Answer::Walk(take_walk(&mut rest)?)),
        _ => return None,
    };
    rest.is_empty().then_some(outcome)
}

fn take_metadata(rest: &mut Rest<'_>) -> Option<Metadata> {
    let (is_directory, is_file, is_symlink) = (rest.flag()?, rest.flag()?, rest.flag()?);
    let size = rest.number()?;
    let (has_birth, birth) = (rest.flag()?, rest.signed()?);
    Some(Metadata {
        is_directory,
        is_file,
        is_symlink,
        size,
        created_at_ms: has_birth.then_some(birth),
        modified_at_ms: rest.signed()?,
    })
}

fn take_entries(rest: &mut Rest<'_>) -> Option<Vec<DirectoryEntry>> {
    let mut entries = Vec::new();
    while !rest.is_empty() {
        entries.push(DirectoryEntry {
            is_directory: rest.flag()?,
            is_file: rest.flag()?,
            is_broken_link: rest.flag()?,
            name: rest.name()?,
        });
    }
    Some(entries)
}

fn take_walk(rest: &mut Rest<'_>) -> Option<Walk> {
    let mut walk = Walk {
        truncated: rest.flag()?,
        ..Walk::default()
    };
    for _ in 0..rest.number()? {
        let kind = match rest.flag()? {
            true => EntryKind::Directory,
            false => EntryKind::File,
        };
        let path = rest.path()?;
        walk.entries.push(WalkEntry { path, kind });
    }
    while !rest.is_empty() {
        let path = rest.path()?;
        let message = String::from_utf8(rest.bytes()?.to_vec()).ok()?;
        walk.errors.push(WalkError { path, message });
    }
    Some(walk)
}

/// A failure is its kind and at most three numbers.
fn put_error(parts: &mut Parts, error: &FilesError) {
    let (kind, numbers) = match error {
        FilesError::Os(error) => (0, [errno(error), 0, 0]),
        FilesError::SymbolicLink => (1, [0; 3]),
        FilesError::NotAFile => (2, [0; 3]),
        FilesError::FileTooLarge { limit } => (3, [*limit, 0, 0]),
        FilesError::BlockLength { limit } => (4, [*limit, 0, 0]),
        FilesError::TooManyEntries { limit } => (5, [*limit as u64, 0, 0]),
        FilesError::WalkOfNothing => (6, [0; 3]),
        FilesError::WalkTooFar {
            depth,
            directories,
            entries,
        } => (7, [*depth, *directories, *entries]),
        FilesError::CopyOfDirectory => (8, [0; 3]),
        FilesError::CopyIntoItself => (9, [0; 3]),
        FilesError::CopyOfSpecial => (10, [0; 3]),
        FilesError::TooDeep { limit } => (11, [*limit as u64, 0, 0]),
        FilesError::Moved => (12, [0; 3]),
        FilesError::Unanswered => (13, [0; 3]),
        FilesError::Slow => (14, [0; 3]),
    };
    parts.byte(kind);
    for number in numbers {
        parts.number(number);
    }
}

fn take_error(rest: &mut Rest<'_>) -> Option<FilesError> {
    let kind = rest.byte()?;
    let numbers = [rest.number()?, rest.number()?, rest.number()?];
    let limit = numbers[0];
    let size = usize::try_from(limit).unwrap_or(usize::MAX);
    Some(match kind {
        0 => FilesError::Os(io::Error::from_raw_os_error(i32::try_from(limit).ok()?)),
        1 => FilesError::SymbolicLink,
        2 => FilesError::NotAFile,
        3 => FilesError::FileTooLarge { limit },
        4 => FilesError::BlockLength { limit },
        5 => FilesError::TooManyEntries { limit: size },
        6 => FilesError::WalkOfNothing,
        7 => FilesError::WalkTooFar {
            depth: numbers[0],
            directories: numbers[1],
            entries: numbers[2],
        },
        8 => FilesError::CopyOfDirectory,
        9 => FilesError::CopyIntoItself,
        10 => FilesError::CopyOfSpecial,
        11 => FilesError::TooDeep { limit: size },
        12 => FilesError::Moved,
        13 => FilesError::Unanswered,
        14 => FilesError::Slow,
        _ => return None,
    })
}

/// The system's number, or the one that comes nearest where the standard library has spoken itself.
fn errno(error: &io::Error) -> u64 {
    let number = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::OutOfMemory => Errno::NOMEM.raw_os_error(),
        io::ErrorKind::InvalidInput => Errno::INVAL.raw_os_error(),
        io::ErrorKind::NotFound => Errno::NOENT.raw_os_error(),
        _ => Errno::IO.raw_os_error(),
    });
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Vec<Answer> {
        let metadata = Metadata {
            is_directory: false,
            is_file: true,
            is_symlink: true,
            size: 5,
            created_at_ms: Some(-6),
            modified_at_ms: 7,
        };
        let entry = DirectoryEntry {
            name: "a".into(),
            is_directory: true,
            is_file: false,
            is_broken_link: true,
        };
        let found = |path: &str, kind| WalkEntry {
            path: path.into(),
            kind,
        };
        let walk = Walk {
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
            Answer::Done,
            Answer::File,
            Answer::Metadata(metadata),
            Answer::Metadata(Metadata {
                created_at_ms: None,
                ..metadata
            }),
            Answer::Path("/a/b".into()),
            Answer::Entries(vec![entry.clone(), entry]),
            Answer::Walk(walk),
        ]
    }

    #[test]
    fn an_answer_is_heard_as_it_was_given() {
        for answer in answers() {
            let bytes = encode(&Ok(answer.clone()));
            assert_eq!(decode(&bytes).unwrap().unwrap(), answer);
        }
    }

    #[test]
    fn a_failure_keeps_its_kind_and_its_words() {
        let failures = [
            FilesError::from(Errno::ROFS),
            FilesError::SymbolicLink,
            FilesError::NotAFile,
            FilesError::FileTooLarge { limit: 1 },
            FilesError::BlockLength { limit: 2 },
            FilesError::TooManyEntries { limit: 3 },
            FilesError::WalkOfNothing,
            FilesError::WalkTooFar {
                depth: 1,
                directories: 2,
                entries: 3,
            },
            FilesError::CopyOfDirectory,
            FilesError::CopyIntoItself,
            FilesError::CopyOfSpecial,
            FilesError::TooDeep { limit: 4 },
            FilesError::Moved,
            FilesError::Unanswered,
            FilesError::Slow,
        ];
        for failure in failures {
            let said = (failure.kind(), failure.to_string());
            let heard = decode(&encode(&Err(failure))).unwrap().unwrap_err();
            assert_eq!((heard.kind(), heard.to_string()), said);
        }
    }

    #[test]
    fn what_is_no_answer_is_not_understood() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[99]).is_none());
        assert!(decode(&[1, 0]).is_none());
        assert!(decode(&[0, 0, 1]).is_none());
    }
}
