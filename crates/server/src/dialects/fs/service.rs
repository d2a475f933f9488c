//! The files of one connection.

use std::{path::PathBuf, sync::Arc};

use outpost_engine::{WorkerExit, sandbox::WorkerAccess};
use outpost_files::{FileExecutor, Files, FilesError};
use outpost_protocol::{RpcError, SandboxParams};
use outpost_rpc::{Lanes, Outbox, outbox::Reservation};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::{
    errors::{files_error, open_rejected},
    executor::file_executor,
    handles::{Handles, ReservationId},
};
use crate::Server;

/// Runs the file operations of one connection. Clones share the same state.
#[derive(Clone)]
pub(crate) struct FileService {
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    outbox: Outbox,
    files: Files,
    handles: Mutex<Handles>,
    /// Orders the requests about the same handle or path.
    lanes: Lanes<Subject>,
    /// One permit for each operation that may run at once.
    running: Semaphore,
    /// One permit for a whole file that is large.
    large: Arc<Semaphore>,
    /// One permit for each listing that may be in memory.
    listings: Semaphore,
    /// Cancelled when the connection is closed.
    closed: CancellationToken,
}

/// The handle or path that a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Handle(String),
    Path(PathBuf),
}

impl FileService {
    pub(crate) fn new(server: &Server, outbox: &Outbox, closed: &CancellationToken) -> Self {
        let settings = server.settings();
        FileService {
            shared: Arc::new(Shared {
                server: server.clone(),
                outbox: outbox.clone(),
                files: Files::new(settings.files),
                handles: Mutex::new(Handles::new(settings.open_files)),
                lanes: Lanes::new(server.tasks().clone()),
                running: Semaphore::new(settings.file_operations),
                large: Arc::new(Semaphore::new(1)),
                listings: Semaphore::new(settings.listings),
                closed: closed.clone(),
            }),
        }
    }

    /// Runs a request after the earlier ones about the same subject.
    pub(crate) async fn in_order(
        &self,
        subject: Subject,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.shared.lanes.run(subject, job).await;
    }

    /// Runs an operation on a blocking thread, in a sandboxed worker if there is a sandbox.
    ///
    /// Returns after the worker has exited, so that the client finds no trace of it, unless the
    /// result keeps the worker in use.
    pub(super) async fn execute<T: Send + 'static>(
        &self,
        sandbox: Option<&SandboxParams>,
        access: WorkerAccess,
        operation: impl FnOnce(FileExecutor) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<(T, WorkerExit), RpcError> {
        let shared = &self.shared;
        let permit = shared.running.acquire().await;
        let (executor, exit) = file_executor(&shared.server, sandbox, access, shared.files).await?;
        let result = self.on_thread(move || operation(executor)).await?;
        drop(permit);
        exit.wait().await;
        Ok((result.map_err(|error| files_error(&error))?, exit))
    }

    /// Runs an operation on an open file on a blocking thread.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let _permit = self.shared.running.acquire().await;
        let result = self.on_thread(work).await?;
        result.map_err(|error| files_error(&error))
    }

    /// Runs work on a blocking thread. The server limits the threads of all connections, and each
    /// connection its own share (`running`).
    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let _permit = self.shared.server.file_threads().acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| RpcError::internal("file operation failed"))
    }

    /// Reserves the id of a handle that is about to be opened.
    pub(crate) fn reserve(&self, id: &str) -> Result<ReservationId, RpcError> {
        let reserved = self.handles().reserve(id);
        reserved.map_err(|rejected| open_rejected(rejected, id))
    }

    pub(super) fn handles(&self) -> MutexGuard<'_, Handles> {
        self.shared.handles.lock()
    }

    /// Waits until a large file may be read or written as a whole.
    pub(super) async fn large_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.shared.large).acquire_owned().await.ok()
    }

    /// The size in bytes from which a file is large.
    pub(super) fn large_bytes(&self) -> u64 {
        self.shared.server.settings().large_file_bytes
    }

    /// Waits until another listing may be in memory.
    pub(super) async fn listing_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.shared.listings.acquire().await.ok()
    }

    /// Waits for space in the outbox for a response of `bytes`; none if the connection is closed.
    pub(super) async fn reserve_outbox(&self, bytes: usize) -> Option<Reservation> {
        tokio::select! {
            reservation = self.shared.outbox.reserve(bytes) => Some(reservation),
            () = self.shared.closed.cancelled() => None,
        }
    }

    /// Closes all handles when the connection is closed. Files that are being written are discarded.
    pub(crate) fn end(&self) {
        let open = self.handles().close_all();
        if open.is_empty() {
            return;
        }
        // Closing a large file takes time.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(open))),
            Err(_) => drop(open),
        }
    }
}
