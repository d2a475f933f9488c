//! Executes calls: the same code in this process and in the worker.

use std::path::Path;

use outpost_types::{FileOp, FileReply, Symlinks};
use rustix::io::Errno;

use crate::executor::ResponseWithFile;
use crate::path_masks::PathMasks;
use crate::worker::messages::{Call, OpenMode, Response};
use crate::{Files, FilesError, Remove};

/// Executes a call that keeps no state. The caller handles `CreateStream` and `Commit`.
pub(crate) fn execute(
    files: &Files,
    masks: &PathMasks,
    call: Call,
) -> Result<ResponseWithFile, FilesError> {
    let checked = masks.check(&call);
    match call {
        Call::Perform(op) => {
            let reply = match (checked, &op) {
                (Err(error), FileOp::Remove { force: true, .. }) if error.is(Errno::NOENT) => {
                    FileReply::Done
                }
                (checked, _) => {
                    checked?;
                    files.perform(masks, op)?
                }
            };
            Ok(ResponseWithFile {
                response: Response::Reply(reply),
                file: None,
            })
        }
        Call::Open {
            path,
            symlinks,
            mode,
        } => {
            checked?;
            let file = match mode {
                OpenMode::Read => files.open_regular(&path, symlinks)?,
                OpenMode::Write => files.open_to_write(&path, symlinks)?,
            };
            Ok(ResponseWithFile {
                response: Response::File,
                file: Some(file.into()),
            })
        }
        Call::CreateStream { .. } | Call::Commit => Err(FilesError::NoReply),
    }
}

impl Files {
    fn perform(&self, masks: &PathMasks, op: FileOp) -> Result<FileReply, FilesError> {
        let done = |()| FileReply::Done;
        match op {
            FileOp::CreateDirectory {
                path,
                recursive,
                symlinks,
            } => {
                let created = if masks.is_placeholder(&path, symlinks) {
                    self.create_over_placeholder(&path, recursive, symlinks)
                } else {
                    self.create_directory(&path, recursive, symlinks)
                };
                created.map(done)
            }
            FileOp::GetMetadata { path, symlinks } => {
                self.metadata(&path, symlinks).map(FileReply::Metadata)
            }
            FileOp::Canonicalize { path } => self.canonicalize(&path).map(FileReply::Path),
            FileOp::ReadDirectory { path, broken_links } => {
                let mut entries = self.read_directory_without(&path, &masks.omitted_names())?;
                entries.retain(|entry| broken_links || !entry.is_broken_link);
                Ok(FileReply::Entries(entries))
            }
            FileOp::Walk { path, options } => self
                .walk_without(&path, options, &masks.omitted_names())
                .map(FileReply::Walk),
            FileOp::Remove {
                path,
                recursive,
                force,
                symlinks,
            } => {
                let options = Remove {
                    recursive,
                    force,
                    symlinks,
                };
                self.remove(&path, options).map(done)
            }
            FileOp::Copy {
                source,
                destination,
                recursive,
            } => self
                .copy_over_placeholder(masks, &source, &destination, recursive)
                .map(done),
        }
    }

    fn copy_over_placeholder(
        &self,
        masks: &PathMasks,
        source: &Path,
        destination: &Path,
        recursive: bool,
    ) -> Result<(), FilesError> {
        let omitted = masks.omitted_names();
        let copy = || self.copy_without(source, destination, recursive, &omitted);
        let is_placeholder = masks.is_placeholder(destination, Symlinks::Follow);
        copy()?;
        // The placeholder may have been removed while it was still empty.
        if is_placeholder && !self.claim_placeholder(destination, Symlinks::Follow)? {
            copy()?;
        }
        Ok(())
    }
}
