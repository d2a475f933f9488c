//! What is asked for.

use std::path::PathBuf;

use super::masks::Masks;
use super::parts::{Parts, Rest};
use crate::{Files, Limits, Links, Means, Remove, WalkOptions};

/// An operation, as [`Files`] has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    OpenToRead(PathBuf, Links),
    OpenToWrite(PathBuf, Links),
    CreateDirectory(PathBuf, bool, Links),
    Metadata(PathBuf, Links),
    Canonicalize(PathBuf),
    ReadDirectory(PathBuf),
    Walk(PathBuf, WalkOptions),
    Remove(PathBuf, Remove),
    Copy(PathBuf, PathBuf, bool),
    CreateStream(PathBuf),
    /// Of the stream that was created last.
    Commit,
}

impl Request {
    /// With the limits it is to keep, and what isn't what it looks like.
    pub(super) fn encode(&self, files: &Files, masks: &Masks) -> Vec<u8> {
        let mut parts = Parts::default();
        put_files(&mut parts, files);
        put_paths(&mut parts, &masks.denied);
        put_paths(&mut parts, &masks.absent);
        put_paths(&mut parts, &masks.held);
        match self {
            Self::OpenToRead(path, links) => {
                parts.byte(0);
                parts.path(path);
                put_links(&mut parts, *links);
            }
            Self::OpenToWrite(path, links) => {
                parts.byte(1);
                parts.path(path);
                put_links(&mut parts, *links);
            }
            Self::CreateDirectory(path, recursive, links) => {
                parts.byte(2);
                parts.path(path);
                parts.flag(*recursive);
                put_links(&mut parts, *links);
            }
            Self::Metadata(path, links) => {
                parts.byte(3);
                parts.path(path);
                put_links(&mut parts, *links);
            }
            Self::Canonicalize(path) => {
                parts.byte(4);
                parts.path(path);
            }
            Self::ReadDirectory(path) => {
                parts.byte(5);
                parts.path(path);
            }
            Self::Walk(path, options) => {
                parts.byte(6);
                parts.path(path);
                put_walk(&mut parts, options);
            }
            Self::Remove(path, how) => {
                parts.byte(7);
                parts.path(path);
                parts.flag(how.recursive);
                parts.flag(how.force);
                put_links(&mut parts, how.links);
            }
            Self::Copy(source, destination, recursive) => {
                parts.byte(8);
                parts.path(source);
                parts.path(destination);
                parts.flag(*recursive);
            }
            Self::CreateStream(path) => {
                parts.byte(9);
                parts.path(path);
            }
            Self::Commit => parts.byte(10),
        }
        parts.0
    }

    /// None if it is something else or was cut off.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, Files, Masks)> {
        let mut rest = Rest(bytes);
        let files = take_files(&mut rest)?;
        let masks = Masks {
            denied: take_paths(&mut rest)?,
            absent: take_paths(&mut rest)?,
            held: take_paths(&mut rest)?,
        };
        let request = match rest.byte()? {
            0 => Self::OpenToRead(rest.path()?, take_links(&mut rest)?),
            1 => Self::OpenToWrite(rest.path()?, take_links(&mut rest)?),
            2 => Self::CreateDirectory(rest.path()?, rest.flag()?, take_links(&mut rest)?),
            3 => Self::Metadata(rest.path()?, take_links(&mut rest)?),
            4 => Self::Canonicalize(rest.path()?),
            5 => Self::ReadDirectory(rest.path()?),
            6 => Self::Walk(rest.path()?, take_walk(&mut rest)?),
            7 => Self::Remove(
                rest.path()?,
                Remove {
                    recursive: rest.flag()?,
                    force: rest.flag()?,
                    links: take_links(&mut rest)?,
                },
            ),
            8 => Self::Copy(rest.path()?, rest.path()?, rest.flag()?),
            9 => Self::CreateStream(rest.path()?),
            10 => Self::Commit,
            _ => return None,
        };
        rest.is_empty().then_some((request, files, masks))
    }
}

fn put_paths(parts: &mut Parts, paths: &[PathBuf]) {
    parts.number(paths.len() as u64);
    for path in paths {
        parts.path(path);
    }
}

fn take_paths(rest: &mut Rest<'_>) -> Option<Vec<PathBuf>> {
    (0..rest.number()?).map(|_| rest.path()).collect()
}

fn put_links(parts: &mut Parts, links: Links) {
    parts.flag(links == Links::Follow);
}

fn take_links(rest: &mut Rest<'_>) -> Option<Links> {
    Some(match rest.flag()? {
        true => Links::Follow,
        false => Links::Refuse,
    })
}

fn put_walk(parts: &mut Parts, options: &WalkOptions) {
    parts.number(options.max_depth);
    parts.number(options.max_directories);
    parts.number(options.max_entries);
    parts.flag(options.follow_directory_symlinks);
    parts.flag(options.prune_hidden_directories);
}

fn take_walk(rest: &mut Rest<'_>) -> Option<WalkOptions> {
    Some(WalkOptions {
        max_depth: rest.number()?,
        max_directories: rest.number()?,
        max_entries: rest.number()?,
        follow_directory_symlinks: rest.flag()?,
        prune_hidden_directories: rest.flag()?,
    })
}

fn put_files(parts: &mut Parts, files: &Files) {
    let limits = &files.limits;
    parts.number(limits.file_bytes);
    parts.number(limits.block_bytes);
    parts.number(limits.directory_entries as u64);
    parts.number(limits.walk_depth);
    parts.number(limits.walk_directories);
    parts.number(limits.walk_entries);
    parts.number(limits.walk_bytes as u64);
    parts.number(limits.copy_depth as u64);
    parts.flag(files.means == Means::Kernel);
}

fn take_files(rest: &mut Rest<'_>) -> Option<Files> {
    let limits = Limits {
        file_bytes: rest.number()?,
        block_bytes: rest.number()?,
        directory_entries: rest.size()?,
        walk_depth: rest.number()?,
        walk_directories: rest.number()?,
        walk_entries: rest.number()?,
        walk_bytes: rest.size()?,
        copy_depth: rest.size()?,
    };
    let means = match rest.flag()? {
        true => Means::Kernel,
        false => Means::Walk,
    };
    Some(Files::new(limits).by(means))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Request> {
        let walk = WalkOptions {
            max_depth: 1,
            max_directories: 2,
            max_entries: 3,
            follow_directory_symlinks: true,
            prune_hidden_directories: false,
        };
        let remove = Remove {
            recursive: true,
            force: false,
            links: Links::Refuse,
        };
        vec![
            Request::OpenToRead("/a".into(), Links::Follow),
            Request::OpenToWrite("/b".into(), Links::Refuse),
            Request::CreateDirectory("/c".into(), true, Links::Follow),
            Request::Metadata("/d".into(), Links::Refuse),
            Request::Canonicalize("/e".into()),
            Request::ReadDirectory("/f".into()),
            Request::Walk("/g".into(), walk),
            Request::Remove("/h".into(), remove),
            Request::Copy("/i".into(), "/j".into(), true),
            Request::CreateStream("/k".into()),
            Request::Commit,
        ]
    }

    #[test]
    fn what_is_asked_is_what_is_heard_and_nothing_less() {
        let limits = Limits {
            file_bytes: 7,
            copy_depth: 9,
            ..Limits::default()
        };
        let files = Files::new(limits).by(Means::Walk);
        let masks = Masks {
            denied: vec!["/x".into(), "/y".into()],
            absent: vec!["/z".into()],
            held: vec!["/w".into()],
        };
        for request in all() {
            let bytes = request.encode(&files, &masks);
            let (heard, by, but) = Request::decode(&bytes).unwrap();
            assert_eq!((&heard, by.limits, but), (&request, limits, masks.clone()));
            assert_eq!(by.means, Means::Walk);
            for length in 0..bytes.len() {
                assert!(Request::decode(&bytes[..length]).is_none(), "{request:?}");
            }
        }
    }
}
