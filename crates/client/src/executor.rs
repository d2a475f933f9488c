//! The executor trait.

use std::{path::Path, pin::Pin};

use outpost_protocol::{HostInfo, ProcessEntry};

use crate::{
    Error, FileError, FileWatch, Files, HttpRequest, HttpResponse, Process, Start, WatchOptions,
};

/// A boxed future, as the methods of [`Executor`] return.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Runs processes: in this program (`LocalExecutor`) or on a server (`RemoteExecutor`).
///
/// Both behave alike, so code that takes a `&dyn Executor` works with either.
pub trait Executor: Send + Sync {
    /// Starts a process and waits until it runs. Dropping the future undoes the start.
    fn start(&self, start: Start) -> Pending<'_, Process>;

    /// Returns a handle of a process that already exists. Its retained events after `after_seq`
    /// are replayed; 0 means all of them. Dropping the handle does not terminate the process.
    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process>;

    /// Lists the processes of the session, oldest first.
    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>>;

    /// Describes the host: operating system, shell, working directory, sandbox support.
    fn environment(&self) -> Pending<'_, HostInfo>;

    /// Returns access to the host's files. It keeps the executor open, as a process does.
    fn files(&self) -> Files;

    /// Watches a path of the host for changes, as [`Files::watch`] does.
    fn watch(
        &self,
        path: &Path,
        options: WatchOptions,
    ) -> Pin<Box<dyn Future<Output = Result<FileWatch, FileError>> + Send>> {
        let (files, path) = (self.files(), path.to_owned());
        Box::pin(async move { files.watch(path, options).await })
    }

    /// Makes an HTTP request from the host, with its network, proxies and environment variables.
    /// Returns once the head of the response has arrived. Dropping the future cancels the request.
    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse>;

    /// Closes the executor. A local executor terminates all its processes. A remote executor
    /// disconnects; its processes continue as long as the session lasts. Every later call fails.
    fn close(&self) -> Pending<'_, ()>;
}
