//! What a connection has of the files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outpost_engine::{Departure, Purpose};
use outpost_files::{Clerk, Files, FilesError};
use outpost_protocol::{RpcError, SandboxParams};
use outpost_rpc::{Lanes, Outbox, outbox::Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    confinement,
    handles::{Handles, Place},
};
use crate::{Server, convert};

/// Where the file operations of a connection are run; clones name the same.
#[derive(Clone)]
pub(crate) struct Desk {
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    outbox: Outbox,
    files: Files,
    handles: Mutex<Handles>,
    /// Requests about the same handle or path, in order.
    lanes: Lanes<Subject>,
    /// A place for each operation that may run at once.
    running: Semaphore,
    /// The one place for a whole file that is large.
    large: Arc<Semaphore>,
    /// A place for each listing that may be in memory.
    listings: Semaphore,
    /// Cancelled when the connection is gone.
    gone: CancellationToken,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Handle(String),
    Path(std::path::PathBuf),
}

impl Desk {
    pub(crate) fn new(server: &Server, outbox: &Outbox, gone: &CancellationToken) -> Self {
        let settings = server.settings();
        Desk {
            shared: Arc::new(Shared {
                server: server.clone(),
                outbox: outbox.clone(),
                files: Files::new(settings.files),
                handles: Mutex::new(Handles::new(settings.open_files)),
                lanes: Lanes::new(server.tasks().clone()),
                running: Semaphore::new(settings.file_operations),
                large: Arc::new(Semaphore::new(1)),
                listings: Semaphore::new(settings.listings),
                gone: gone.clone(),
            }),
        }
    }

    /// Runs a request behind those about the same thing.
    pub(crate) async fn in_order(
        &self,
        subject: Subject,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        self.shared.lanes.run(subject, job).await;
    }

    /// Runs an operation that only looks where it may block, confined as it is to be.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        sandbox: Option<&SandboxParams>,
        operation: impl FnOnce(Clerk) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let (done, departure) = self.confined(sandbox, Purpose::Look, operation).await?;
        // Who hears of it finds nothing left of it.
        departure.complete().await;
        done
    }

    /// The same for one that changes something.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        sandbox: Option<&SandboxParams>,
        operation: impl FnOnce(Clerk) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let (done, departure) = self.confined(sandbox, Purpose::Change, operation).await?;
        departure.complete().await;
        done
    }

    /// The same for one that isn't over yet when it is answered.
    pub(super) async fn begin<T: Send + 'static>(
        &self,
        sandbox: Option<&SandboxParams>,
        operation: impl FnOnce(Clerk) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<(T, Departure), RpcError> {
        let (done, departure) = self.confined(sandbox, Purpose::Change, operation).await?;
        departure.complete().await;
        Ok((done?, departure))
    }

    async fn confined<T: Send + 'static>(
        &self,
        sandbox: Option<&SandboxParams>,
        purpose: Purpose,
        operation: impl FnOnce(Clerk) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<(Result<T, RpcError>, Departure), RpcError> {
        let shared = &self.shared;
        let _place = shared.running.acquire().await;
        let clerk = confinement::clerk(&shared.server, sandbox, purpose, shared.files);
        let (clerk, departure) = clerk.await?;
        let done = self.on_a_thread(move || operation(clerk)).await?;
        let done = done.map_err(|error| convert::files_error(&error));
        Ok((done, departure))
    }

    /// Runs something where it may block. A bound of the connection keeps one
    /// client from taking all threads there are, one of the server all clients.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        // Neither is ever closed.
        let _place = self.shared.running.acquire().await;
        self.on_a_thread(work).await
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let _thread = self.shared.server.file_threads().acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| RpcError::internal("file operation failed"))
    }

    /// Takes a name for something that is about to be opened.
    pub(crate) fn reserve(&self, id: &str) -> Result<Place, RpcError> {
        let reserved = self.handles().reserve(id);
        reserved.map_err(|occupied| convert::occupied(occupied, id))
    }

    pub(super) fn handles(&self) -> MutexGuard<'_, Handles> {
        let handles = &self.shared.handles;
        handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a large file may be read or written as a whole.
    pub(super) async fn large(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.shared.large).acquire_owned().await.ok()
    }

    /// From how many bytes on a file is large.
    pub(super) fn large_bytes(&self) -> u64 {
        self.shared.server.settings().large_file_bytes
    }

    /// Waits until another listing may be in memory.
    pub(super) async fn listing(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.shared.listings.acquire().await.ok()
    }

    /// Waits for room for an answer of so many bytes; none if nobody is there
    /// to read it.
    pub(super) async fn room(&self, bytes: usize) -> Option<Reservation> {
        tokio::select! {
            room = self.shared.outbox.reserve(bytes) => Some(room),
            () = self.shared.gone.cancelled() => None,
        }
    }

    /// The connection is gone: what it had open is closed, and what it was
    /// writing leaves no trace.
    pub(crate) fn end(&self) {
        let open = self.handles().close_all();
        if open.is_empty() {
            return;
        }
        // To let go of a large file takes its time.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(open))),
            Err(_) => drop(open),
        }
    }
}
