//! The files of one connection, and the methods that are a file operation.

use std::{path::PathBuf, sync::Arc};

use outpost_engine::{FileClient, StartError, WorkerExit, sandbox::WorkerAccess};
use outpost_files::{FileExecutor, Files, FilesError, WatchError};
use outpost_protocol::{
    AppMetadata, ErrorKind, FileOp, FileReply, FileRequest, PathUri, PathUse, RpcError,
    SandboxParams,
};
use outpost_rpc::Lanes;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    ResultMemory,
    handles::{Handle, ReservationId},
};
use crate::{
    audit::Event,
    auth::RequestPath,
    connection::{Connection, Reply},
    convert,
    file_threads::FileThreadError,
};

/// Runs the file operations of one connection.
pub(crate) struct FileService {
    pub(super) connection: Arc<Connection>,
    files: Files,
    /// Orders the requests about the same handle or path.
    pub(crate) lanes: Lanes<Subject>,
    /// One permit for each operation that may run at once.
    running: Semaphore,
    /// One permit for a whole file that is large.
    pub(super) large: Semaphore,
    /// One permit for each listing that may be in memory.
    listings: Semaphore,
}

/// The files that an operation uses, and how.
pub(crate) struct FileAccess {
    /// The sandbox that the client asks for.
    pub(crate) sandbox: Option<SandboxParams>,
    /// The paths of the request. Empty for those that a client does not name.
    pub(crate) paths: Vec<RequestPath>,
    pub(crate) file_use: FileUse,
}

/// The use of the last path of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    Read,
    Write,
    Remove,
}

impl FileUse {
    fn of(op: &FileOp) -> FileUse {
        match op {
            _ if op.is_read_only() => FileUse::Read,
            FileOp::Remove(_) => FileUse::Remove,
            _ => FileUse::Write,
        }
    }

    fn worker(self) -> WorkerAccess {
        match self {
            FileUse::Read => WorkerAccess::Read,
            FileUse::Write | FileUse::Remove => WorkerAccess::Write,
        }
    }
}

impl FileAccess {
    /// Access to a file that the client names.
    pub(crate) fn to(
        path: &PathUri,
        sandbox: Option<SandboxParams>,
        file_use: FileUse,
    ) -> FileAccess {
        FileAccess {
            sandbox,
            paths: vec![RequestPath::followed(path.as_path())],
            file_use,
        }
    }

    /// Reading files that the client does not name.
    pub(crate) fn of_host(sandbox: Option<SandboxParams>) -> FileAccess {
        FileAccess {
            sandbox,
            paths: Vec::new(),
            file_use: FileUse::Read,
        }
    }

    /// Its event in the audit log.
    fn event(&self) -> Option<Event<'_>> {
        let (used, others) = self.paths.split_last()?;
        match self.file_use {
            FileUse::Read => None,
            FileUse::Write => {
                let source = others.last().map(|source| &*source.path);
                Some(Event::write_file(&used.path, source))
            }
            FileUse::Remove => Some(Event::remove(&used.path)),
        }
    }
}

/// The handle or path that a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Handle(String),
    Path(PathBuf),
}

impl Subject {
    pub(crate) fn handle(id: &str) -> Self {
        Subject::Handle(id.to_owned())
    }

    pub(crate) fn path(path: &PathUri) -> Self {
        Subject::Path(path.as_path().to_owned())
    }
}

impl FileService {
    pub(crate) fn new(connection: &Arc<Connection>) -> Arc<Self> {
        let server = &connection.server;
        let settings = &server.settings;
        Arc::new(FileService {
            files: Files::new(settings.files),
            lanes: Lanes::new(server.tasks.clone()),
            running: Semaphore::new(settings.file_operations),
            large: Semaphore::new(1),
            listings: Semaphore::new(settings.listings),
            connection: Arc::clone(connection),
        })
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs an operation on a blocking thread, in a sandboxed worker if there is a sandbox to
    /// enforce.
    ///
    /// Returns after the worker has exited, so that the client finds no trace of it, unless the
    /// result keeps the worker in use.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        access: FileAccess,
        operation: impl FnOnce(FileExecutor) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<(T, WorkerExit), RpcError> {
        let permit = self.running.acquire().await;
        if let Some(event) = access.event() {
            let recorded = self.connection.audit.admit(None, &event);
            recorded.map_err(convert::not_recorded)?;
        }
        let executor = self.executor(access).await;
        let (executor, exit) = executor.map_err(|error| convert::start_error(&error))?;
        let result = self.on_thread(move || operation(executor)).await;
        drop(permit);
        exit.wait().await;
        Ok((result?, exit))
    }

    /// Returns an executor that is sandboxed as the request and the principal ask for.
    async fn executor(&self, access: FileAccess) -> Result<(FileExecutor, WorkerExit), StartError> {
        let connection = &self.connection;
        let (host, engine) = (&connection.server.host, &connection.server.engine);
        let asks_for_none = access.sandbox.as_ref();
        connection.check_unsandboxed(asks_for_none.is_some_and(SandboxParams::asks_for_none))?;
        let sandbox = access.sandbox;
        let policy = sandbox.and_then(|sandbox| sandbox.into_policy(host.info.cwd.as_path()));
        let floor = connection.file_floor(access.paths, policy.as_ref()).await?;
        let client = FileClient {
            peer: connection.peer,
            max_processes: connection.principal.settings.limits.processes,
            key: Arc::as_ptr(connection).addr(),
        };
        let confinement = (policy, floor);
        let environment = &host.environment;
        let worker = access.file_use.worker();
        let executor = engine.file_executor(client, confinement, environment, worker, self.files);
        executor.await
    }

    /// Rejects a watch with a sandbox that has to be enforced: the kernel reports changes of files
    /// to the server, without regard to what a sandbox hides.
    pub(super) fn check_watch(&self, sandbox: Option<SandboxParams>) -> Result<(), RpcError> {
        let cwd = self.connection.server.host.info.cwd.as_path();
        match sandbox.and_then(|sandbox| sandbox.into_policy(cwd)) {
            None => Ok(()),
            Some(_) => Err(RpcError::invalid_params(WatchError::Sandboxed.to_string())
                .with_kind(ErrorKind::Sandbox)),
        }
    }

    /// Runs an operation on an open file on a blocking thread.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let _permit = self.running.acquire().await;
        self.on_thread(work).await
    }

    /// Runs work on a blocking thread. The server limits the threads of all connections, and each
    /// connection its own share (`running`).
    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, RpcError> {
        match self.connection.server.file_threads.run(work).await {
            Ok(result) => result.map_err(|error| convert::files_error(&error)),
            Err(FileThreadError::NoThread) => Err(RpcError::internal(
                "cannot start a thread for the file operation; retry",
            )),
            Err(FileThreadError::Panicked) => Err(RpcError::internal("file operation failed")),
        }
    }

    /// Waits until a file of `bytes` may be read or written as a whole. Returns a permit if it
    /// is large.
    pub(super) async fn whole_file_permit(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        if bytes <= self.connection.server.settings.large_file_bytes {
            return None;
        }
        self.large.acquire().await.ok()
    }

    /// Puts an opened handle into its slot, or frees the slot.
    pub(crate) fn fill(
        &self,
        id: &str,
        slot: ReservationId,
        opened: Result<Handle, RpcError>,
    ) -> Result<(), RpcError> {
        match opened {
            Ok(handle) => {
                // Drop the file now if the handle was closed meanwhile.
                let closed = self.connection.handles.lock().fill(id, slot, handle);
                drop(closed);
                Ok(())
            }
            Err(error) => {
                self.connection.handles.lock().free(id, slot);
                Err(error)
            }
        }
    }

    /// Closes a handle. Its id is free at once.
    pub(crate) fn close(&self, id: &str) {
        let closed = self.connection.handles.lock().close(id);
        drop_in_background(closed);
    }

    /// Closes all handles when the connection is closed. Files that are being written are discarded.
    pub(crate) fn end(&self) {
        let open = self.connection.handles.lock().close_all();
        drop_in_background(open);
    }
}

/// Drops files on a blocking thread: closing a large file takes time.
fn drop_in_background(files: impl IntoIterator<Item = Handle>) {
    let files: Vec<Handle> = files.into_iter().collect();
    if files.is_empty() {
        return;
    }
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(files))),
        Err(_) => drop(files),
    }
}

/// Performs a file operation and sends its reply.
pub(crate) async fn perform(service: Arc<FileService>, request: FileRequest, reply: Reply) {
    let FileRequest { op, sandbox } = request;
    let _permit = if op.replies_with_listing() {
        service.listings.acquire().await.ok()
    } else {
        None
    };
    let mut memory = ResultMemory::new(&service.connection.memory);
    let paths = op.used_paths().into_iter().map(|used| RequestPath {
        path: used.path.to_owned(),
        is_entry: used.path_use == PathUse::Entry,
    });
    let access = FileAccess {
        sandbox,
        paths: paths.collect(),
        file_use: FileUse::of(&op),
    };
    let performed = service.execute(access, move |executor| {
        let reply = executor.perform_within(op, &mut |bytes| memory.take(bytes))?;
        Ok((reply, memory))
    });
    let Some((((result, mut memory), _), reply)) = reply.accept(performed.await) else {
        return;
    };
    let Some(bytes) = result.listing_bytes() else {
        return match result {
            FileReply::Metadata(metadata) if reply.is_for_app() => {
                reply.send(Ok(AppMetadata::from(metadata)));
            }
            result => reply.send(Ok(result)),
        };
    };
    // The entries, until they are encoded.
    memory.shrink_to(bytes);
    let reserved = service.connection.reserve(bytes).await;
    if let Some((reservation, reply)) = reply.accept(reserved) {
        reply.send_large(result, bytes, reservation);
    }
}
