//! The sandboxed file worker: a process of ours that executes calls received over a socket.
//!
//! Every path is resolved in the worker, never by the process that sends the call.
//!
//! A request is a tuple of [`Files`], [`PathMasks`] and [`Call`]; a response is a
//! `Result<Response, FilesError>`. A message is JSON after a version byte, because the program on
//! disk, from which the worker is started, may have been replaced by another version.

use std::any::Any;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use outpost_types::{Empty, FileOp, FileReply, PathUri, PathUse, Symlinks, UsedPath};
use rustix::buffer::spare_capacity;
use rustix::cmsg_space;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic_write::StreamWriter;
use crate::directory_entries::TakeListingMemory;
use crate::executor::{CallResult, execute};
use crate::{Files, FilesError, PathMasks};

/// The version of the messages. A new member of an operation needs a new one: a server whose binary was
/// replaced would otherwise get the permissive default of the wire for a member that is missing.
const VERSION: u8 = 3;

/// A call to the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Call {
    Perform(FileOp),
    /// Opens a regular file, whose descriptor comes with the response.
    Open {
        path: PathUri,
        symlinks: Symlinks,
        mode: OpenMode,
    },
    /// Starts to replace a file. The descriptor of the new file comes with the response.
    CreateStream {
        path: PathUri,
    },
    /// Commits the stream that was created last.
    Commit,
}

/// The access with which a worker opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OpenMode {
    Read,
    /// Creates the file if it does not exist.
    Write,
    /// As `Write`, and truncates the file.
    Replace,
}

/// The response to a successful call. `R` is the reply, whose type depends on the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response<R> {
    Reply(R),
    /// The file's descriptor comes with the message.
    File,
}

impl Call {
    pub(crate) fn used_paths(&self) -> Vec<UsedPath<'_>> {
        let (path, symlinks, path_use) = match self {
            Self::Perform(op) => return op.used_paths(),
            Self::Commit => return Vec::new(),
            Self::Open {
                path,
                symlinks,
                mode: OpenMode::Read,
            } => (path, *symlinks, PathUse::Target),
            Self::Open { path, symlinks, .. } => (path, *symlinks, PathUse::Create),
            Self::CreateStream { path } => (path, Symlinks::Follow, PathUse::Create),
        };
        vec![UsedPath {
            path: path.as_path(),
            symlinks,
            path_use,
        }]
    }
}

pub(crate) fn encode(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, message).ok()?;
    Some(bytes)
}

/// None if the message has another version, is incomplete or has bytes left over.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (&VERSION, bytes) = bytes.split_first()? else {
        return None;
    };
    serde_json::from_slice(bytes).ok()
}

/// Executes calls from the socket until it is closed or a message cannot be decoded. A stream that
/// is not committed by then is discarded.
///
/// `is_placeholder` tells whether the directory at a placeholder path is still a placeholder.
pub fn run_worker(socket: OwnedFd, is_placeholder: fn(&Path) -> bool) {
    let socket = WorkerSocket::worker(socket);
    let mut stream = None;
    while let Ok(Some(message)) = socket.receive(&mut |_| true) {
        let Some((files, masks, call)) = decode::<(Files, PathMasks, Call)>(&message.bytes) else {
            return;
        };
        let masks = masks.relevant_to(&call, is_placeholder);
        let (response, file) = match handle(&files, &masks, &call, &mut stream) {
            Ok(CallResult::Reply(reply)) => (Ok(Response::Reply(reply)), None),
            Ok(CallResult::File(file)) => (Ok(Response::File), Some(file)),
            Err(error) => (Err(error), None),
        };
        let Some(response) = encode(&response) else {
            return;
        };
        let file = file.as_ref().map(|file| file.as_fd());
        if socket.send(&response, file).is_err() {
            return;
        }
    }
}

fn handle(
    files: &Files,
    masks: &PathMasks,
    call: &Call,
    stream: &mut Option<StreamWriter>,
) -> Result<CallResult, FilesError> {
    match call {
        Call::CreateStream { path } => {
            masks.check(call)?;
            let writer = files.create_stream(path.as_path())?;
            let file = writer.clone_file()?;
            *stream = Some(writer);
            Ok(CallResult::File(file))
        }
        Call::Commit => {
            let writer = stream.take().ok_or(FilesError::NoReply)?;
            writer.commit()?;
            Ok(CallResult::Reply(FileReply::Done(Empty {})))
        }
        call => execute(files, masks, call, &mut |_| true),
    }
}

/// The largest packet. Well below the default send buffer of a socket.
const PACKET_BYTES: usize = 64 * 1024;

/// The largest message. The longest response is a directory listing: 50,000 names of 255 bytes, each
/// of which may take six in JSON.
const MAX_MESSAGE_BYTES: usize = 128 * 1024 * 1024;

/// One end of a blocking `SOCK_SEQPACKET` connection.
///
/// A message is a packet with its length, and the file descriptor if there is one, followed by its
/// bytes in packets.
pub struct WorkerSocket {
    socket: OwnedFd,
    /// Dropped with the socket.
    _guard: Box<dyn Any + Send + Sync>,
}

/// A received message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: Option<OwnedFd>,
}

impl WorkerSocket {
    /// The executor's end. Every send and receive waits at most `timeout`. `guard` is dropped with
    /// the socket.
    ///
    /// # Errors
    /// When the descriptor is no socket.
    pub fn client(
        socket: OwnedFd,
        timeout: Duration,
        guard: impl Any + Send + Sync,
    ) -> io::Result<Self> {
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(timeout))?;
        }
        Ok(WorkerSocket {
            socket,
            _guard: Box::new(guard),
        })
    }

    /// The worker's end, which waits without a limit.
    fn worker(socket: OwnedFd) -> Self {
        WorkerSocket {
            socket,
            _guard: Box::new(()),
        }
    }

    /// Sends a message, and a file descriptor with it.
    pub(crate) fn send(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        let files: Vec<_> = file.into_iter().collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let head = [IoSlice::new(&length)];
        retry_on_intr(|| {
            rustix::net::sendmsg(&self.socket, &head, &mut control, SendFlags::NOSIGNAL)
        })?;
        for packet in bytes.chunks(PACKET_BYTES) {
            retry_on_intr(|| rustix::net::send(&self.socket, packet, SendFlags::NOSIGNAL))?;
        }
        Ok(())
    }

    /// Waits for a message; none if the other end is closed. Takes the memory of its length first,
    /// and fails if there is none.
    pub(crate) fn receive(
        &self,
        take_memory: TakeListingMemory<'_>,
    ) -> io::Result<Option<Message>> {
        let mut length = [0; 8];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = retry_on_intr(|| {
            let mut buffer = [IoSliceMut::new(&mut length)];
            rustix::net::recvmsg(&self.socket, &mut buffer, &mut control, flags)
        });
        match received {
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
            Ok(received) if received.bytes == 0 => return Ok(None),
            Ok(received) if received.bytes < length.len() => return Err(Errno::PROTO.into()),
            Ok(_) => {}
        }
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file = files.next().and_then(|mut files| files.next());
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_MESSAGE_BYTES {
            return Err(Errno::MSGSIZE.into());
        }
        if !take_memory(length) {
            return Err(Errno::NOMEM.into());
        }
        let bytes = self.receive_bytes(length)?;
        Ok(Some(Message { bytes, file }))
    }

    fn receive_bytes(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| io::Error::from(Errno::NOMEM))?;
        while bytes.len() < length {
            let (received, _) = retry_on_intr(|| {
                let flags = RecvFlags::empty();
                rustix::net::recv(&self.socket, spare_capacity(&mut bytes), flags)
            })?;
            if received == 0 {
                return Err(Errno::PIPE.into());
            }
        }
        Ok(bytes)
    }
}

impl fmt::Debug for WorkerSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkerSocket")
            .field(&self.socket.as_fd())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use outpost_types::{
        DirectoryEntry, EntryKind, FileMetadata, FsCanonicalizeParams, FsCanonicalizeResult,
        FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsReadDirectoryParams,
        FsReadDirectoryResult, FsRemoveParams, FsWalkParams, WalkEntry, WalkError, WalkOptions,
        WalkResult,
    };
    use serde_json::value::RawValue;

    use super::*;
    use crate::{Limits, SymlinkCheck};

    fn calls() -> Vec<Call> {
        let path = PathUri::from_path(Path::new(OsStr::from_bytes(b"/caf\xe9")));
        let options = WalkOptions {
            max_depth: 1,
            max_directories: 2,
            max_entries: 3,
            follow_directory_symlinks: true,
            prune_hidden_directories: false,
        };
        let ops = [
            FileOp::CreateDirectory(FsCreateDirectoryParams {
                path: path.clone(),
                recursive: true,
                symlinks: Symlinks::Follow,
            }),
            FileOp::GetMetadata(FsGetMetadataParams {
                path: path.clone(),
                symlinks: Symlinks::Reject,
            }),
            FileOp::Canonicalize(FsCanonicalizeParams { path: path.clone() }),
            FileOp::ReadDirectory(FsReadDirectoryParams {
                path: path.clone(),
                broken_links: true,
            }),
            FileOp::Walk(FsWalkParams {
                path: path.clone(),
                options,
            }),
            FileOp::Remove(FsRemoveParams {
                path: path.clone(),
                recursive: true,
                force: false,
                symlinks: Symlinks::Reject,
            }),
            FileOp::Copy(FsCopyParams {
                source_path: path.clone(),
                destination_path: PathUri::from_path(Path::new("/b")),
                recursive: true,
            }),
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
            open(OpenMode::Replace),
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
                reason: Some("why".into()),
            }],
            truncated: true,
        };
        let path = PathUri::from_path(Path::new(OsStr::from_bytes(b"/a/caf\xe9")));
        let entries = vec![entry("a", true), entry("b", false)];
        // In the order of `calls`.
        vec![
            FileReply::Done(Empty {}),
            FileReply::Metadata(metadata),
            FileReply::Path(FsCanonicalizeResult { path }),
            FileReply::Entries(FsReadDirectoryResult { entries }),
            FileReply::Walk(walk),
            FileReply::Done(Empty {}),
            FileReply::Done(Empty {}),
        ]
    }

    #[test]
    fn responses_round_trip() {
        for (call, reply) in calls().into_iter().zip(replies()) {
            let Call::Perform(op) = call else {
                panic!("no operation: {call:?}");
            };
            let bytes = encode(&Ok::<_, FilesError>(Response::Reply(&reply))).unwrap();
            let decoded: Result<Response<Box<RawValue>>, FilesError> = decode(&bytes).unwrap();
            let Ok(Response::Reply(decoded)) = decoded else {
                panic!("no reply: {decoded:?}");
            };
            assert_eq!(op.parse_reply(&decoded).unwrap(), reply);
        }
        let bytes = encode(&Ok::<_, FilesError>(Response::<FileReply>::File)).unwrap();
        let decoded: Result<Response<Empty>, FilesError> = decode(&bytes).unwrap();
        assert_eq!(decoded.unwrap(), Response::File);
    }

    #[test]
    fn errors_keep_their_kind_and_message() {
        let errors = [
            FilesError::from(Errno::ROFS),
            FilesError::SymbolicLink,
            FilesError::NotRegularFile { path: None },
            FilesError::NotRegularFile {
                path: Some(PathUri::from_path(Path::new(OsStr::from_bytes(
                    b"/caf\xe9",
                )))),
            },
            FilesError::WriteLength { limit: 5 },
            FilesError::WriteRange,
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
            let bytes = encode(&Err::<Response<Empty>, _>(error)).unwrap();
            let decoded: Result<Response<Empty>, FilesError> = decode(&bytes).unwrap();
            let decoded = decoded.unwrap_err();
            assert_eq!((decoded.kind(), decoded.to_string()), expected);
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        let good = encode(&Ok::<_, FilesError>(Response::<Empty>::File)).unwrap();
        let other_version: Vec<_> = [VERSION + 1]
            .into_iter()
            .chain(good[1..].iter().copied())
            .collect();
        let longer: Vec<_> = good.iter().copied().chain([0]).collect();
        for bytes in [&[][..], &[VERSION], &[VERSION, 99], &other_version, &longer] {
            assert!(decode::<Result<Response<Empty>, FilesError>>(bytes).is_none());
        }
    }
}
