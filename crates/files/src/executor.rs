//! Executes file operations in this process or in a sandboxed worker process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use outpost_types::{Empty, FileOp, FileReply, FsCanonicalizeResult, PathUri, PathUse, Symlinks};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::value::RawValue;

use crate::atomic_write::{Writer, WriterBackend};
use crate::directory_entries::TakeListingMemory;
use crate::path_masks::PathMasks;
use crate::regular::{check_size, replace_content};
use crate::resolve::open_following;
use crate::worker::{Call, OpenMode, Response, decode, encode};
use crate::{Files, FilesError, Limits, OpenFile, WorkerSocket};

/// Copies of a worker's reply in memory: as it was received, as raw JSON, and parsed.
const REPLY_COPIES: usize = 3;

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
    /// An executor in this process, without placeholders.
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
        self.perform_within(op, &mut |_| true)
    }

    /// Executes an operation, and takes the memory of a listing while it is built.
    pub fn perform_within(
        &self,
        op: FileOp,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<FileReply, FilesError> {
        match self.call(&Call::Perform(op), take_memory)? {
            CallResult::Reply(reply) => Ok(reply),
            CallResult::File(_) => Err(FilesError::NoReply),
        }
    }

    /// Opens a regular file for reading.
    pub fn open(&self, path: &PathUri, symlinks: Symlinks) -> Result<OpenFile, FilesError> {
        let file = self.open_as(path, symlinks, OpenMode::Read)?;
        Ok(OpenFile::new(file, self.limits()))
    }

    /// Truncates a regular file, or creates it, and opens it for writing in place.
    pub fn replace(&self, path: &PathUri) -> Result<OpenFile, FilesError> {
        let file = self.open_as(path, Symlinks::Follow, OpenMode::Replace)?;
        Ok(OpenFile::new(file, self.limits()))
    }

    fn limits(&self) -> Limits {
        match self {
            Self::InProcess(executor) => executor.files.limits,
            Self::Sandboxed(executor) => executor.files.limits,
        }
    }

    /// Reads all bytes of a regular file.
    pub fn read(&self, path: &PathUri, symlinks: Symlinks) -> Result<Vec<u8>, FilesError> {
        self.open(path, symlinks)?.read()
    }

    /// Replaces the content of a regular file with `bytes`. Creates the file if it does not exist. An
    /// existing file keeps its inode, and with it its hard links, mode and owner.
    pub fn write(
        &self,
        path: &PathUri,
        bytes: &[u8],
        symlinks: Symlinks,
    ) -> Result<(), FilesError> {
        check_size(bytes.len() as u64)?;
        replace_content(self.open_as(path, symlinks, OpenMode::Write)?, bytes)
    }

    /// Starts to replace a file, which need not exist. If the path is a symbolic link, its target is
    /// replaced. The worker lives as long as the writer.
    pub fn create_stream(self, path: &PathUri) -> Result<Writer, FilesError> {
        let created = match self {
            Self::InProcess(executor) => {
                let created = executor.files.create_stream(path.as_path());
                created.map(WriterBackend::InProcess)
            }
            Self::Sandboxed(executor) => {
                let call = Call::CreateStream { path: path.clone() };
                let file = executor.call(&call).and_then(CallResult::into_file);
                file.map(|file| WriterBackend::Sandboxed { file, executor })
            }
        };
        created.map(Writer).map_err(|error| error.about(path))
    }

    fn open_as(
        &self,
        path: &PathUri,
        symlinks: Symlinks,
        mode: OpenMode,
    ) -> Result<File, FilesError> {
        let call = Call::Open {
            path: path.clone(),
            symlinks,
            mode,
        };
        let opened = self
            .call(&call, &mut |_| true)
            .and_then(CallResult::into_file);
        opened.map_err(|error| error.about(path))
    }

    fn call(
        &self,
        call: &Call,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<CallResult, FilesError> {
        match self {
            Self::InProcess(executor) => executor.call(call, take_memory),
            Self::Sandboxed(executor) => executor.call_within(call, take_memory),
        }
    }
}

/// The outcome of a successful call.
pub(crate) enum CallResult {
    Reply(FileReply),
    File(File),
}

impl CallResult {
    fn into_file(self) -> Result<File, FilesError> {
        match self {
            Self::File(file) => Ok(file),
            Self::Reply(_) => Err(FilesError::NoReply),
        }
    }
}

impl InProcess {
    fn call(
        &self,
        call: &Call,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<CallResult, FilesError> {
        let masks = PathMasks {
            placeholders: self.placeholders.clone(),
            ..PathMasks::default()
        };
        let masks = masks.relevant_to(call, self.is_placeholder);
        execute(&self.files, &masks, call, take_memory)
    }
}

impl Sandboxed {
    /// Sends a call and waits for the response.
    pub(crate) fn call(&self, call: &Call) -> Result<CallResult, FilesError> {
        self.call_within(call, &mut |_| true)
    }

    fn call_within(
        &self,
        call: &Call,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<CallResult, FilesError> {
        let request = encode(&(&self.files, &self.masks, call)).ok_or(FilesError::NoReply)?;
        self.socket.send(&request, None).map_err(socket_error)?;
        let mut has_memory = true;
        let message = self.socket.receive(&mut |bytes| {
            has_memory = take_memory(bytes * REPLY_COPIES);
            has_memory
        });
        if !has_memory {
            return Err(FilesError::NoListingMemory);
        }
        let message = message.map_err(socket_error)?;
        let message = message.ok_or(FilesError::NoReply)?;
        let response: Result<Response<Box<RawValue>>, FilesError> =
            decode(&message.bytes).ok_or(FilesError::NoReply)?;
        match (response?, message.file, call) {
            (Response::Reply(reply), _, Call::Perform(op)) => {
                let reply = op.parse_reply(&reply).map_err(|_| FilesError::NoReply)?;
                Ok(CallResult::Reply(reply))
            }
            (Response::Reply(_), _, _) => Ok(CallResult::Reply(FileReply::Done(Empty {}))),
            (Response::File, Some(file), _) => Ok(CallResult::File(file.into())),
            // The kernel discards a received descriptor if this process has too many open.
            (Response::File, None, _) => Err(Errno::MFILE.into()),
        }
    }
}

fn socket_error(error: io::Error) -> FilesError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FilesError::Timeout,
        _ => FilesError::NoReply,
    }
}

/// Executes a call that keeps no state, in this process or in the worker. The caller handles
/// `CreateStream` and `Commit`.
pub(crate) fn execute(
    files: &Files,
    masks: &PathMasks,
    call: &Call,
    take_memory: TakeListingMemory<'_>,
) -> Result<CallResult, FilesError> {
    match (masks.check(call), call) {
        (Err(error), Call::Perform(FileOp::Remove(op))) if op.force && error.is(Errno::NOENT) => {
            return Ok(CallResult::Reply(FileReply::Done(Empty {})));
        }
        (checked, _) => checked?,
    }
    match call {
        Call::Perform(op) => {
            check_resolved_paths(op)?;
            files.perform(masks, op, take_memory).map(CallResult::Reply)
        }
        Call::Open {
            path,
            symlinks,
            mode,
        } => {
            let file = match mode {
                OpenMode::Read => files.open_regular(path.as_path(), *symlinks)?,
                OpenMode::Write => files.open_to_write(path.as_path(), *symlinks)?,
                OpenMode::Replace => files.open_to_replace(path.as_path())?,
            };
            Ok(CallResult::File(file))
        }
        Call::CreateStream { .. } | Call::Commit => Err(FilesError::NoReply),
    }
}

/// Fails if a path of the operation leads to the files of this process in a procfs. For the parts of
/// operations that use paths instead of open files, such as creating missing parents. A path without
/// links needs no check of its own.
fn check_resolved_paths(op: &FileOp) -> Result<(), FilesError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let followed = op.used_paths().into_iter();
    for used in followed.filter(|used| used.symlinks.are_followed()) {
        // For a path that does not exist, open the nearest existing parent.
        for path in used.path.ancestors() {
            let last = match used.path_use {
                PathUse::Entry if path == used.path => OFlags::NOFOLLOW,
                _ => OFlags::empty(),
            };
            match open_following(path, flags | last, Mode::empty()) {
                Err(error @ (FilesError::OwnProcfs | FilesError::ProcfsLink)) => return Err(error),
                Ok(_) => break,
                Err(_) => {}
            }
        }
    }
    Ok(())
}

impl Files {
    fn perform(
        &self,
        masks: &PathMasks,
        op: &FileOp,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<FileReply, FilesError> {
        let done = |()| FileReply::Done(Empty {});
        match op {
            FileOp::CreateDirectory(op) => self.create_directory(masks, op).map(done),
            FileOp::GetMetadata(op) => self.metadata(op).map(FileReply::Metadata),
            FileOp::Canonicalize(op) => {
                let path = PathUri::from_path(&op.path.as_path().canonicalize()?);
                Ok(FileReply::Path(FsCanonicalizeResult { path }))
            }
            FileOp::ReadDirectory(op) => {
                let listed = self.read_directory(masks, op, take_memory);
                listed.map(FileReply::Entries)
            }
            FileOp::Walk(op) => self.walk(masks, op, take_memory).map(FileReply::Walk),
            FileOp::Remove(op) => self.remove(op).map(done),
            FileOp::Copy(op) => self.copy(masks, op).map(done),
        }
    }
}
