//! Watched paths of a server, across reconnects.

use std::{collections::HashMap, sync::Arc, time::Duration};

use outpost_protocol::{
    FsChanged, FsUnwatchParams, FsWatchParams, FsWatchResult, Method, PathUri, code,
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    connection::{CallError, Connection, PendingRequest},
    session::{Session, SessionGuard, require},
};
use crate::{
    Error,
    files::{BackendError, FileChanges, FileTarget, WatchOptions, WatchQueue},
};

/// Delay before a watch is opened again on a server that is overloaded, such as one that has not yet
/// noticed the loss of the connection.
const OVERLOAD_DELAY: Duration = Duration::from_millis(200);

/// The queues of the watches of one connection, by watch id.
#[derive(Default)]
pub(super) struct ConnectionWatches {
    queues: Mutex<HashMap<String, Arc<WatchQueue>>>,
}

impl ConnectionWatches {
    /// Handles a notification.
    pub(super) fn changed(&self, changed: FsChanged) {
        let queue = self.queues.lock().get(&changed.watch_id).cloned();
        if let Some(queue) = queue {
            let native = |uris: Vec<PathUri>| uris.into_iter().map(PathUri::into_path).collect();
            queue.add(FileChanges {
                paths: native(changed.changed_paths),
                missed: changed.missed,
                unreadable: native(changed.unreadable),
            });
        }
    }

    fn insert(&self, id: &str, queue: &Arc<WatchQueue>) {
        let mut queues = self.queues.lock();
        queues.insert(id.to_owned(), Arc::clone(queue));
    }

    fn remove(&self, id: &str) {
        let queue = self.queues.lock().remove(id);
        drop(queue);
    }
}

/// Watches a path, and adds its changes to the queue until the result is dropped.
pub(super) async fn watch(
    guard: Arc<SessionGuard>,
    file: FileTarget,
    options: WatchOptions,
    queue: Arc<WatchQueue>,
) -> Result<Box<dyn Send + Sync>, BackendError> {
    let session = &guard.session;
    require(session.capabilities().fs_watch, "fsWatch")?;
    let watch = RemoteWatch {
        session: Arc::clone(session),
        params: FsWatchParams {
            watch_id: session.generate_id("w"),
            path: file.path,
            recursive: options.recursive,
            sandbox: file.sandbox,
        },
        queue,
    };
    let ended = CancellationToken::new();
    let ends: DropGuard = ended.clone().drop_guard();
    let (opened, opening) = oneshot::channel();
    session.tasks.spawn(watch.run(ended, opened));
    let closed = |_| Err(Error::disconnected("the executor was closed"));
    opening.await.unwrap_or_else(closed)?;
    // The watch keeps the session open.
    Ok(Box::new((ends, guard)))
}

/// A watch, which is opened again on each new connection.
struct RemoteWatch {
    session: Arc<Session>,
    params: FsWatchParams,
    queue: Arc<WatchQueue>,
}

impl RemoteWatch {
    /// Keeps the watch open until it is ended, or the session is.
    async fn run(self, ended: CancellationToken, opened: oneshot::Sender<Result<(), Error>>) {
        let failure = tokio::select! {
            biased;
            () = ended.cancelled() => None,
            () = self.session.closing.cancelled() => {
                Some(Error::disconnected("the executor was closed"))
            }
            failure = self.keep_open(opened) => Some(failure),
        };
        self.close();
        if let Some(error) = failure {
            self.queue.fail(error.into());
        }
    }

    async fn keep_open(&self, opened: oneshot::Sender<Result<(), Error>>) -> Error {
        let mut connection = match self.open(false).await {
            Ok(connection) => connection,
            Err(error) => {
                let _ = opened.send(Err(error.clone()));
                return error;
            }
        };
        // Fails if the caller has stopped waiting, which ends the watch.
        let _ = opened.send(Ok(()));
        loop {
            connection.closed().await;
            connection = match self.open(true).await {
                Ok(connection) => connection,
                Err(error) => return error,
            };
            self.queue.add(FileChanges {
                missed: true,
                ..FileChanges::default()
            });
        }
    }

    /// Opens the watch on the current connection. `again`: the watch was open before, so that an
    /// overloaded server is asked until it has space.
    async fn open(&self, again: bool) -> Result<Arc<Connection>, Error> {
        let id = &self.params.watch_id;
        loop {
            let connection = self.session.connection().await?;
            connection.watches.insert(id, &self.queue);
            let call = connection.call::<FsWatchResult>(Method::FsWatch, &self.params);
            let error = match call.await {
                Ok(FsWatchResult { .. }) => return Ok(connection),
                Err(error) => error,
            };
            connection.watches.remove(id);
            match error {
                CallError::Lost(_) => {}
                CallError::Rejected(error) if again && error.code == code::OVERLOADED => {
                    sleep(OVERLOAD_DELAY).await;
                }
                error => return Err(error.into()),
            }
        }
    }

    /// Ends the watch on the server.
    fn close(&self) {
        let Some(connection) = self.session.connection_now() else {
            return;
        };
        let watch_id = self.params.watch_id.clone();
        connection.watches.remove(&watch_id);
        let params = FsUnwatchParams { watch_id };
        // A lost connection has ended its watches.
        let _ = connection.request(Method::FsUnwatch, &params, PendingRequest::Ignored);
    }
}
