//! Executes file operations in this process or in a sandboxed worker process.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use outpost_types::{FileOp, FileReply, Symlinks};
use rustix::io::Errno;

use crate::path_masks::PathMasks;
use crate::perform::execute;
use crate::regular::check_size;
use crate::worker::messages::{Call, OpenMode, Response, decode, encode};
use crate::write::replace_content;
use crate::writer::{Writer, WriterBackend};
use crate::{Files, FilesError, OpenFile, WorkerSocket};

/// Executes file operations, in this process or in a sandboxed worker process.
///
/// File content does not pass through the worker's socket. The worker opens the file and sends its
/// descriptor: the sandbox decided about access when the file was opened. Everything that depends on
/// a path, such as renaming a new file over an old one, is done by the worker.
#[derive(Debug)]
pub enum FileExecutor {
    /// Runs with all permissions of this process.
    InProcess(InProcess),
    /// Runs in a sandboxed worker.
    Sandboxed(Sandboxed),
}

/// Executes file operations in this process.
#[derive(Debug)]
pub struct InProcess {
    /// The operations with their limits.
    pub files: Files,
    /// Paths where a placeholder directory may exist. Until it has content, it counts as missing.
    pub placeholders: Vec<PathBuf>,
    /// Whether the directory at one of these paths is still a placeholder.
    pub is_placeholder: fn(&Path) -> bool,
}

/// Executes file operations in a sandboxed worker process.
#[derive(Debug)]
pub struct Sandboxed {
    /// The connection to the worker.
    pub socket: WorkerSocket,
    /// The operations with their limits.
    pub files: Files,
    /// The paths that the sandbox hides behind something else.
    pub masks: PathMasks,
}

impl FileExecutor {
    /// An executor in this process that knows no placeholders.
    #[must_use]
    pub fn in_process(files: Files) -> Self {
        Self::InProcess(InProcess {
            files,
            placeholders: Vec::new(),
            is_placeholder: |_| false,
        })
    }

    /// Executes an operation.
    pub fn perform(&self, op: FileOp) -> Result<FileReply, FilesError> {
        self.call(Call::Perform(op))?.into_reply()
    }

    /// Opens a regular file for reading.
    pub fn open(&self, path: &Path, symlinks: Symlinks) -> Result<OpenFile, FilesError> {
        let file = self.open_as(path, symlinks, OpenMode::Read)?;
        Ok(OpenFile::new(file, self.files().limits))
    }

    /// Reads all bytes of a regular file.
    pub fn read(&self, path: &Path, symlinks: Symlinks) -> Result<Vec<u8>, FilesError> {
        self.open(path, symlinks)?.read()
    }

    /// Replaces the content of a file with `bytes`. Creates the file if it does not exist.
    pub fn write(&self, path: &Path, bytes: &[u8], symlinks: Symlinks) -> Result<(), FilesError> {
        check_size(bytes.len() as u64)?;
        replace_content(self.open_as(path, symlinks, OpenMode::Write)?, bytes)
    }

    /// Starts to replace a file, which need not exist. The worker lives as long as the writer.
    pub fn create_stream(self, path: &Path) -> Result<Writer, FilesError> {
        Ok(Writer(match self {
            Self::InProcess(executor) => {
                WriterBackend::InProcess(executor.files.create_stream(path)?)
            }
            Self::Sandboxed(executor) => {
                let path = path.to_owned();
                let file = executor.call(&Call::CreateStream { path })?.into_file()?;
                WriterBackend::Sandboxed { file, executor }
            }
        }))
    }

    fn open_as(&self, path: &Path, symlinks: Symlinks, mode: OpenMode) -> Result<File, FilesError> {
        let path = path.to_owned();
        let call = Call::Open {
            path,
            symlinks,
            mode,
        };
        self.call(call)?.into_file()
    }

    fn files(&self) -> &Files {
        match self {
            Self::InProcess(executor) => &executor.files,
            Self::Sandboxed(executor) => &executor.files,
        }
    }

    fn call(&self, call: Call) -> Result<ResponseWithFile, FilesError> {
        match self {
            Self::InProcess(executor) => executor.call(call),
            Self::Sandboxed(executor) => executor.call(&call),
        }
    }
}

/// The response to a call and the file that came with it.
pub(crate) struct ResponseWithFile {
    pub(crate) response: Response,
    pub(crate) file: Option<OwnedFd>,
}

impl ResponseWithFile {
    pub(crate) fn into_reply(self) -> Result<FileReply, FilesError> {
        match self.response {
            Response::Reply(reply) => Ok(reply),
            Response::File => Err(FilesError::NoReply),
        }
    }

    fn into_file(self) -> Result<File, FilesError> {
        match (self.response, self.file) {
            (Response::File, Some(file)) => Ok(file.into()),
            // The kernel discards a received descriptor if this process has too many open.
            (Response::File, None) => Err(Errno::MFILE.into()),
            (Response::Reply(_), _) => Err(FilesError::NoReply),
        }
    }
}

impl InProcess {
    fn call(&self, call: Call) -> Result<ResponseWithFile, FilesError> {
        let masks = PathMasks {
            placeholders: self.placeholders.clone(),
            ..PathMasks::default()
        };
        let masks = masks.relevant_to(&call, self.is_placeholder);
        execute(&self.files, &masks, call)
    }
}

impl Sandboxed {
    /// Sends a call and waits for the response.
    pub(crate) fn call(&self, call: &Call) -> Result<ResponseWithFile, FilesError> {
        let request = encode(&(&self.files, &self.masks, call)).ok_or(FilesError::NoReply)?;
        self.socket.send(&request, None).map_err(socket_error)?;
        let message = self.socket.receive().map_err(socket_error)?;
        let message = message.ok_or(FilesError::NoReply)?;
        let response: Result<Response, FilesError> =
            decode(&message.bytes).ok_or(FilesError::NoReply)?;
        Ok(ResponseWithFile {
            response: response?,
            file: message.file,
        })
    }
}

fn socket_error(error: io::Error) -> FilesError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FilesError::Timeout,
        _ => FilesError::NoReply,
    }
}
