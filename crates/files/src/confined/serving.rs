//! Who answers: what a confined process of ours does.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;

use super::answer::{self, Answer};
use super::line::Line;
use super::masks::Masks;
use super::request::Request;
use crate::{Files, FilesError, StreamWriter};

/// Does what is asked over this socket until nobody asks any more, or something is asked that can't
/// be understood. What was being written then leaves no trace.
pub fn serve(socket: OwnedFd) {
    let line = Line::answering(socket);
    let mut stream = None;
    while let Ok(Some(message)) = line.receive() {
        let Some((request, files, masks)) = Request::decode(&message.bytes) else {
            return;
        };
        let outcome = answer(files, &masks, request, &mut stream);
        let (outcome, file) = match outcome {
            Ok((answer, file)) => (Ok(answer), file),
            Err(error) => (Err(error), None),
        };
        let file = file.as_ref().map(OwnedFd::as_fd);
        if line.send(&answer::encode(&outcome), file).is_err() {
            return;
        }
    }
}

fn answer(
    files: Files,
    masks: &Masks,
    request: Request,
    stream: &mut Option<StreamWriter>,
) -> Result<(Answer, Option<OwnedFd>), FilesError> {
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
            files.create_directory(&path, recursive, links).map(done)
        }
        Request::Metadata(path, links) => {
            let found = files.metadata(&path, links)?;
            Ok((Answer::Metadata(found), None))
        }
        Request::Canonicalize(path) => Ok((Answer::Path(files.canonicalize(&path)?), None)),
        Request::ReadDirectory(path) => Ok((Answer::Entries(files.read_directory(&path)?), None)),
        Request::Walk(path, options) => Ok((Answer::Walk(files.walk(&path, options)?), None)),
        Request::Remove(path, how) => files.remove(&path, how).map(done),
        Request::Copy(source, destination, recursive) => {
            files.copy(&source, &destination, recursive).map(done)
        }
        Request::CreateStream(path) => {
            let writer = files.create_stream(&path)?;
            let file = writer.draft()?;
            *stream = Some(writer);
            Ok(opened(file))
        }
        Request::Commit => match stream.take() {
            Some(writer) => writer.commit().map(done),
            None => Err(FilesError::Unanswered),
        },
    }
}
