//! What is asked for, done: here or behind walls, as if nothing stood where nothing is.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::answer::Answer;
use super::masks::Masks;
use super::request::Request;
use crate::{Files, FilesError, Links};

/// What came of it, and what comes along.
pub(super) type Done = (Answer, Option<OwnedFd>);

/// Does everything that is over when it is answered.
pub(super) fn perform(files: Files, masks: &Masks, request: Request) -> Result<Done, FilesError> {
    let opened = |file: std::fs::File| (Answer::File, Some(file.into()));
    let done = |()| (Answer::Done, None);
    match (masks.check(&request), &request) {
        (Err(error), Request::Remove(_, how)) if how.force && error.is(Errno::NOENT) => {
            return Ok(done(()));
        }
        (checked, _) => checked?,
    }
    match request {
        Request::OpenToRead(path, links) => files.open_regular(&path, links).map(opened),
        Request::OpenToWrite(path, links) => files.open_to_write(&path, links).map(opened),
        Request::CreateDirectory(path, recursive, links) => {
            let made = match masks.holds(&path, links) {
                true => files.make_held(&path, recursive, links),
                false => files.create_directory(&path, recursive, links),
            };
            made.map(done)
        }
        Request::Metadata(path, links) => {
            let found = files.metadata(&path, links)?;
            Ok((Answer::Metadata(found), None))
        }
        Request::Canonicalize(path) => Ok((Answer::Path(files.canonicalize(&path)?), None)),
        Request::ReadDirectory(path) => {
            let entries = files.read_directory_but(&path, &masks.gaps())?;
            Ok((Answer::Entries(entries), None))
        }
        Request::Walk(path, options) => {
            let walk = files.walk_but(&path, options, &masks.gaps())?;
            Ok((Answer::Walk(walk), None))
        }
        Request::Remove(path, how) => files.remove(&path, how).map(done),
        Request::Copy(source, destination, recursive) => {
            let gaps = masks.gaps();
            let copy = || files.copy_but(&source, &destination, recursive, &gaps);
            let held = masks.holds(&destination, Links::Follow);
            copy()?;
            // It has gone before there was anything in it.
            if held && !files.claim(&destination, Links::Follow)? {
                copy()?;
            }
            Ok(done(()))
        }
        // Whoever has begun it sees to it.
        Request::CreateStream(_) | Request::Commit => Err(FilesError::Unanswered),
    }
}
