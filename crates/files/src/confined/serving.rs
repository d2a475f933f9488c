//! Who answers: what a confined process of ours does.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use super::answer::{self, Answer};
use super::doing::{Done, perform};
use super::line::Line;
use super::masks::Masks;
use super::request::Request;
use crate::{Files, FilesError, StreamWriter};

/// Does what is asked over this socket until nobody asks any more, or something is asked that can't
/// be understood. What was being written then leaves no trace. `is_held` says of a place that may be
/// held whether it is.
pub fn serve(socket: OwnedFd, is_held: fn(&Path) -> bool) {
    let line = Line::answering(socket);
    let mut stream = None;
    while let Ok(Some(message)) = line.receive() {
        let Some((request, files, masks)) = Request::decode(&message.bytes) else {
            return;
        };
        let masks = masks.about(&request, is_held);
        let (outcome, file) = match answer(files, &masks, request, &mut stream) {
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
) -> Result<Done, FilesError> {
    match request {
        Request::CreateStream(ref path) => {
            masks.check(&request)?;
            let writer = files.create_stream(path)?;
            let file = writer.draft()?;
            *stream = Some(writer);
            Ok((Answer::File, Some(file.into())))
        }
        Request::Commit => match stream.take() {
            Some(writer) => writer.commit().map(|()| (Answer::Done, None)),
            None => Err(FilesError::Unanswered),
        },
        request => perform(files, masks, request),
    }
}
