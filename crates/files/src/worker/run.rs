//! The main loop of the worker.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use outpost_types::FileReply;

use super::messages::{Call, Response, decode, encode};
use super::socket::WorkerSocket;
use crate::executor::ResponseWithFile;
use crate::path_masks::PathMasks;
use crate::perform::execute;
use crate::{Files, FilesError, StreamWriter};

/// Executes calls from the socket until it is closed or a message cannot be decoded. A stream that
/// is not committed by then is discarded.
///
/// `is_placeholder` tells whether the directory at a placeholder path is still a placeholder.
pub fn run_worker(socket: OwnedFd, is_placeholder: fn(&Path) -> bool) {
    let socket = WorkerSocket::worker(socket);
    let mut stream = None;
    while let Ok(Some(message)) = socket.receive() {
        let Some((files, masks, call)) = decode::<(Files, PathMasks, Call)>(&message.bytes) else {
            return;
        };
        let masks = masks.relevant_to(&call, is_placeholder);
        let (response, file) = match handle(&files, &masks, call, &mut stream) {
            Ok(ResponseWithFile { response, file }) => (Ok(response), file),
            Err(error) => (Err(error), None),
        };
        let Some(response) = encode(&response) else {
            return;
        };
        let file = file.as_ref().map(OwnedFd::as_fd);
        if socket.send(&response, file).is_err() {
            return;
        }
    }
}

fn handle(
    files: &Files,
    masks: &PathMasks,
    call: Call,
    stream: &mut Option<StreamWriter>,
) -> Result<ResponseWithFile, FilesError> {
    match call {
        Call::CreateStream { ref path } => {
            masks.check(&call)?;
            let writer = files.create_stream(path)?;
            let file = writer.clone_file()?;
            *stream = Some(writer);
            Ok(ResponseWithFile {
                response: Response::File,
                file: Some(file.into()),
            })
        }
        Call::Commit => {
            let writer = stream.take().ok_or(FilesError::NoReply)?;
            writer.commit()?;
            Ok(ResponseWithFile {
                response: Response::Reply(FileReply::Done),
                file: None,
            })
        }
        call => execute(files, masks, call),
    }
}
