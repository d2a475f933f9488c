//! `fs/watch`, `fs/unwatch` and `fs/watchMissing`.

use std::sync::Arc;

use outpost_files::{MissingPathsRequest, WatchError, WatchOptions, Watcher};
use outpost_protocol::{
    AppWatchParams, AppWatchResult, Empty, FsUnwatchParams, FsWatchMissingParams,
    FsWatchMissingResult, FsWatchParams, FsWatchResult, PathUri, RpcError,
};
use outpost_rpc::{MemoryShare, Outbox};
use parking_lot::Mutex;
use serde::Serialize;

use super::{
    FileService,
    watch_feed::{PathForm, WatchFeed},
};
use crate::{
    connection::{Connection, Reply},
    convert,
    dialects::notifier::SharedNotificationOptions,
};

/// The longest id of a watch, in bytes.
const MAX_ID_BYTES: usize = 4096;

/// The watches of one connection.
pub(crate) struct Watches {
    feed: Arc<WatchFeed>,
    /// Created with the first watch.
    watcher: Mutex<Option<Arc<Watcher>>>,
}

impl Watches {
    pub(crate) fn new(
        outbox: &Outbox,
        notifications: &SharedNotificationOptions,
        memory: &MemoryShare,
    ) -> Self {
        Watches {
            feed: Arc::new_cyclic(|this| WatchFeed::new(this, outbox, notifications, memory)),
            watcher: Mutex::new(None),
        }
    }

    /// Whether no path is watched. A watch of missing paths does not count: most clients have one.
    pub(crate) fn is_empty(&self) -> bool {
        self.feed.is_empty()
    }

    /// Ends all watches.
    pub(crate) fn end(&self) {
        self.feed.clear();
        let watcher = self.watcher.lock().take();
        drop(watcher);
    }

    fn watcher(&self, connection: &Connection) -> Result<Arc<Watcher>, WatchError> {
        let mut watcher = self.watcher.lock();
        if connection.gone.is_cancelled() {
            return Err(WatchError::Ended);
        }
        if let Some(watcher) = &*watcher {
            return Ok(Arc::clone(watcher));
        }
        let feed = Arc::clone(&self.feed);
        let server = &connection.server;
        let permits = server.watch_limiter.of_watcher(connection.peer);
        let new = Watcher::with_permits(server.settings.watch, permits, feed)?;
        let new = Arc::new(new);
        *watcher = Some(Arc::clone(&new));
        Ok(new)
    }
}

/// Watches a path for a client of the app-server.
pub(crate) fn watch_native(connection: &Arc<Connection>, params: AppWatchParams, reply: Reply) {
    let path = PathUri::from_path(params.path.as_path());
    let result = AppWatchResult {
        path: path.as_path().to_string_lossy().into_owned(),
    };
    let watch = NewWatch {
        id: params.watch_id,
        path,
        options: WatchOptions::default(),
        form: PathForm::Native,
    };
    open(connection, watch, result, reply);
}

/// Watches a path.
pub(crate) fn watch(service: &FileService, params: FsWatchParams, reply: Reply) {
    let sandboxed = service.check_watch(params.sandbox);
    let Some(((), reply)) = reply.accept(sandboxed) else {
        return;
    };
    let result = FsWatchResult {
        path: params.path.clone(),
    };
    let watch = NewWatch {
        id: params.watch_id,
        path: params.path,
        options: WatchOptions {
            recursive: params.recursive,
        },
        form: PathForm::Uri,
    };
    open(&service.connection, watch, result, reply);
}

/// A watch to open.
struct NewWatch {
    id: String,
    path: PathUri,
    options: WatchOptions,
    form: PathForm,
}

/// Opens a watch, and sends `result` before its first change.
fn open<R: Serialize + Send + 'static>(
    connection: &Arc<Connection>,
    watch: NewWatch,
    result: R,
    reply: Reply,
) {
    if connection.may_watch_anything() {
        return open_permitted(connection, watch, result, reply);
    }
    let connection = Arc::clone(connection);
    let tasks = connection.server.tasks.clone();
    tasks.spawn(async move {
        let path = watch.path.as_path().to_owned();
        let permitted = connection.check_watch(vec![path]).await;
        if let Some(((), reply)) = reply.accept(permitted) {
            open_permitted(&connection, watch, result, reply);
        }
    });
}

/// Opens a watch of a path that the principal may watch.
fn open_permitted<R: Serialize + Send + 'static>(
    connection: &Arc<Connection>,
    watch: NewWatch,
    result: R,
    reply: Reply,
) {
    let NewWatch {
        id,
        path,
        options,
        form,
    } = watch;
    let feed = &connection.watches.feed;
    let checked = convert::check_length("watchId", &id, MAX_ID_BYTES).and_then(|()| {
        if feed.has_id(&id) {
            let message = format!("watchId already exists: {id}");
            return Err(RpcError::invalid_request(message));
        }
        let permit = connection.server.watch_limiter.acquire(connection.peer);
        let permit = permit.ok_or_else(RpcError::overloaded)?;
        let watcher = connection.watches.watcher(connection);
        let watcher = watcher.map_err(|error| convert::watch_error(&error))?;
        Ok((permit, watcher))
    });
    let Some(((permit, watcher), reply)) = reply.accept(checked) else {
        return;
    };
    let key = watcher.reserve();
    feed.insert(id, key, form, permit);
    let feed = Arc::clone(feed);
    watcher.watch(key, path.into_path(), options, move |opened| {
        if opened.is_err() {
            feed.remove_failed(key);
        }
        let result = opened.map(|()| result);
        reply.send(result.map_err(|error| convert::watch_error(&error)));
    });
}

/// Ends a watch, even if it is still being opened. Its changes are not sent after the response.
pub(crate) fn unwatch(connection: &Connection, params: &FsUnwatchParams, reply: Reply) {
    let key = connection.watches.feed.remove(&params.watch_id);
    if let (Some(key), Ok(watcher)) = (key, connection.watches.watcher(connection)) {
        watcher.unwatch(key);
    }
    reply.send(Ok(Empty {}));
}

/// Watches missing paths until one of them may exist.
pub(crate) fn watch_missing(
    connection: &Arc<Connection>,
    params: FsWatchMissingParams,
    reply: Reply,
) {
    let paths = MissingPathsRequest {
        id: params.watch_id,
        missing: params
            .missing
            .into_iter()
            .map(|uri| uri.into_path())
            .collect(),
        present: params.present.map(|uri| uri.into_path()),
    };
    if connection.may_watch_anything() {
        return watch_permitted_missing(connection, paths, reply);
    }
    let connection = Arc::clone(connection);
    let tasks = connection.server.tasks.clone();
    tasks.spawn(async move {
        let used = paths.missing.iter().chain(&paths.present).flatten();
        let permitted = connection.check_watch(used.cloned().collect()).await;
        if let Some(((), reply)) = reply.accept(permitted) {
            watch_permitted_missing(&connection, paths, reply);
        }
    });
}

fn watch_permitted_missing(connection: &Connection, paths: MissingPathsRequest, reply: Reply) {
    let respond = |watching| reply.send(Ok(FsWatchMissingResult { watching }));
    match connection.watches.watcher(connection) {
        Ok(watcher) => watcher.watch_missing(paths, respond),
        Err(_) => respond(false),
    }
}
