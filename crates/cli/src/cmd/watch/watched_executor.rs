//! The watches on one executor: this host, or a server whose session is replaced when it has ended.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outpost_client::{
    ConnectionState, Error, ErrorKind, Executor as _, FileWatch, Files, RemoteExecutor,
    RemoteLimits, RemoteOptions, WatchOptions,
};
use rustix::io::Errno;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::batch::Batch;
use crate::{console::Notice, endpoint::Endpoint, render::out::note, transfer::file_error};

/// Bounds of the exponential backoff between attempts to open a new session.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// After a session that lasted as long, the next one is opened without delay.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// The delay of the next attempt to open a session. Grows with each attempt until a session lasts.
#[derive(Debug, Default)]
struct Backoff {
    delay: Duration,
}

impl Backoff {
    fn session_ended(&mut self, lasted: Duration) {
        if lasted >= STABLE_AFTER {
            self.delay = Duration::ZERO;
        }
    }

    /// Returns the delay of the next attempt, and increases that of the one after it.
    fn next_delay(&mut self) -> Duration {
        let increased = (self.delay * 2).clamp(FIRST_BACKOFF, MAX_BACKOFF);
        std::mem::replace(&mut self.delay, increased)
    }
}

/// Paths to watch on one executor.
pub(super) struct WatchedExecutor {
    /// The server; none for this host.
    server: Option<Endpoint>,
    /// Each path with the one that the user has given.
    paths: Vec<(PathBuf, PathBuf)>,
    options: WatchOptions,
}

/// The open watches, in the order of the paths.
pub(super) struct OpenWatches {
    remote: Option<RemoteExecutor>,
    watches: Vec<FileWatch>,
    /// The given paths that do not exist yet.
    missing: Vec<PathBuf>,
}

impl OpenWatches {
    pub(super) fn remote(&self) -> Option<&RemoteExecutor> {
        self.remote.as_ref()
    }

    pub(super) fn missing(&self) -> &[PathBuf] {
        &self.missing
    }
}

impl WatchedExecutor {
    pub(super) fn new(server: Option<Endpoint>, options: WatchOptions) -> Self {
        WatchedExecutor {
            server,
            paths: Vec::new(),
            options,
        }
    }

    /// Identifies the server among those of the command; none for this host.
    pub(super) fn key(&self) -> Option<&str> {
        self.server.as_ref().map(Endpoint::key)
    }

    pub(super) fn add(&mut self, path: PathBuf, given: PathBuf) {
        self.paths.push((path, given));
    }

    /// Connects and opens the watches.
    pub(super) async fn open(&self) -> anyhow::Result<OpenWatches> {
        self.open_on(self.server.as_ref()).await
    }

    async fn open_on(&self, server: Option<&Endpoint>) -> anyhow::Result<OpenWatches> {
        let options = RemoteOptions::default().client_name("outpost watch");
        let remote = match server {
            Some(server) => Some(server.connect(options).await?),
            None => None,
        };
        let files = match &remote {
            Some(remote) => remote.files(),
            None => Files::here(),
        };
        let mut watches = Vec::new();
        let mut missing = Vec::new();
        for (path, given) in &self.paths {
            let watch = files.watch(path, self.options).await;
            watches.push(watch.map_err(|error| describe(error.into()))?);
            // Asked afterwards, so that a path that appears meanwhile is at least reported.
            let Err(error) = files.metadata(path).await else {
                continue;
            };
            match error.os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR) => missing.push(given.clone()),
                Some(Errno::NAMETOOLONG) => return Err(describe(error.into())),
                // Without the permission to ask, it stays unknown.
                _ => {}
            }
        }
        Ok(OpenWatches {
            remote,
            watches,
            missing,
        })
    }

    /// Forwards changes until an error ends the watches. Sends each new connection to `current`.
    pub(super) async fn run(
        self,
        mut open: OpenWatches,
        current: watch::Sender<Option<RemoteExecutor>>,
        batches: mpsc::Sender<anyhow::Result<Batch>>,
    ) {
        let mut backoff = Backoff::default();
        loop {
            let opened_at = Instant::now();
            let notice = Notice::next_to(None, None);
            let remote = open.remote.clone();
            let error = tokio::select! {
                error = self.forward(open, &batches) => error,
                () = notice.follow(remote.as_ref()) => return,
            };
            backoff.session_ended(opened_at.elapsed());
            open = match self.open_again(error, &mut backoff).await {
                Ok(open) => open,
                Err(error) => {
                    // Fails if the command ends anyway.
                    let _ = batches.send(Err(error)).await;
                    return;
                }
            };
            current.send_replace(open.remote.clone());
            note("connected again, with a new session");
            let _ = batches.send(Ok(Batch::missed())).await;
        }
    }

    /// Forwards changes until a watch or the session fails.
    async fn forward(
        &self,
        open: OpenWatches,
        batches: &mpsc::Sender<anyhow::Result<Batch>>,
    ) -> anyhow::Error {
        let mut tasks = JoinSet::new();
        for (watch, (_, given)) in open.watches.into_iter().zip(&self.paths) {
            tasks.spawn(forward(watch, given.clone(), batches.clone()));
        }
        match tasks.join_next().await {
            Some(Ok(error)) => error,
            Some(Err(error)) => error.into(),
            // Only the command uses the server.
            None => session_failed(open.remote.as_ref()).await.into(),
        }
    }

    /// Opens a new session and all watches, if the session was lost and the server can be reached
    /// again. Attempts it for as long as the client attempts to resume a session.
    async fn open_again(
        &self,
        error: anyhow::Error,
        backoff: &mut Backoff,
    ) -> anyhow::Result<OpenWatches> {
        let server = self.server.clone().map(Endpoint::unattended);
        let Some(server) = server.filter(|server| !server.is_launched() && is_lost(&error)) else {
            return Err(error);
        };
        let name = server.description();
        note(&format!(
            "the session on {name} has ended; opening a new one…"
        ));
        let within = RemoteLimits::default().reconnect_timeout;
        let opened = retry(within, error, backoff, || self.open_on(Some(&server))).await;
        opened.map_err(|error| match is_temporary(&error) {
            true => error.context(format!("{name} did not come back within {within:?}")),
            false => error,
        })
    }
}

/// Makes attempts until one succeeds, or its failure is not temporary. Returns the last error when the
/// time is over.
async fn retry<T, A: Future<Output = anyhow::Result<T>>>(
    within: Duration,
    mut last: anyhow::Error,
    backoff: &mut Backoff,
    attempt: impl Fn() -> A,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + within;
    loop {
        let delay = backoff.next_delay();
        if Instant::now() + delay >= deadline {
            return Err(last);
        }
        sleep(delay).await;
        match timeout_at(deadline, attempt()).await {
            Ok(Err(error)) if is_temporary(&error) => last = error,
            Ok(outcome) => return outcome,
            Err(_) => return Err(last),
        }
    }
}

/// Forwards the changes of a watch until it fails. While the channel is full, the watch gathers changes.
async fn forward(
    mut watch: FileWatch,
    given: PathBuf,
    batches: mpsc::Sender<anyhow::Result<Batch>>,
) -> anyhow::Error {
    loop {
        let changes = match watch.next().await {
            Ok(changes) => changes,
            Err(error) => return describe(error.into()),
        };
        let batch = Batch::new(&given, watch.path(), changes);
        if batches.send(Ok(batch)).await.is_err() {
            return anyhow::anyhow!("the command has ended");
        }
    }
}

/// Waits until the session has failed.
async fn session_failed(remote: Option<&RemoteExecutor>) -> Error {
    let Some(remote) = remote else {
        return std::future::pending().await;
    };
    let mut state = remote.connection_state();
    let is_failed = |state: &ConnectionState| matches!(state, ConnectionState::Failed { .. });
    let reason = match state.wait_for(is_failed).await.as_deref() {
        Ok(ConnectionState::Failed { reason, .. }) => Arc::clone(reason),
        _ => "the executor was closed".into(),
    };
    Error::Disconnected { reason }
}

/// An error about a file or about its executor.
fn describe(error: anyhow::Error) -> anyhow::Error {
    match file_error(error) {
        Ok(error) | Err(error) => error,
    }
}

/// The error of the client among the causes.
fn client_error(error: &anyhow::Error) -> Option<&Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// Whether the session is lost.
fn is_lost(error: &anyhow::Error) -> bool {
    matches!(client_error(error), Some(Error::Disconnected { .. }))
}

/// Whether another attempt may succeed.
fn is_temporary(error: &anyhow::Error) -> bool {
    match client_error(error) {
        Some(Error::Unreachable { source, .. }) => !source.is_permanent(),
        Some(Error::Disconnected { .. } | Error::TimedOut { .. }) => true,
        Some(Error::Rejected { kind, .. }) => *kind == ErrorKind::Overloaded,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const WITHIN: Duration = Duration::from_millis(300);

    fn lost(reason: &str) -> anyhow::Error {
        let reason = reason.into();
        anyhow::Error::new(Error::Disconnected { reason }).context("cannot watch")
    }

    /// Retries an attempt that fails with these errors, one after the other, and then succeeds.
    async fn outcome(errors: Vec<fn() -> anyhow::Error>) -> Result<u32, String> {
        let attempts = AtomicU32::new(0);
        let mut backoff = Backoff::default();
        let retried = retry(WITHIN, lost("first"), &mut backoff, || async {
            let attempt = attempts.fetch_add(1, Ordering::Relaxed);
            match errors.get(attempt as usize) {
                Some(error) => Err(error()),
                None => Ok(attempt),
            }
        });
        retried.await.map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn temporary_failures_are_retried_and_others_are_not() {
        assert_eq!(outcome(vec![]).await, Ok(0));
        assert_eq!(outcome(vec![|| lost("again"); 2]).await, Ok(2));
        let denied = outcome(vec![|| lost("again"), || anyhow::anyhow!("denied")]);
        assert_eq!(denied.await, Err("denied".to_owned()));
    }

    #[tokio::test]
    async fn last_error_is_returned_when_the_time_is_over() {
        let error = outcome(vec![|| lost("again"); 99]).await.unwrap_err();
        assert!(error.ends_with(": again"), "{error}");
        let mut backoff = Backoff::default();
        let hanging = retry(
            WITHIN,
            lost("first"),
            &mut backoff,
            std::future::pending::<anyhow::Result<()>>,
        );
        let error = hanging.await.unwrap_err();
        assert!(format!("{error:#}").ends_with(": first"), "{error:#}");
    }

    #[tokio::test]
    async fn delay_grows_until_a_session_lasts() {
        let mut backoff = Backoff::default();
        for delay in [0, 50, 100, 200, 400, 800, 1000, 1000] {
            assert_eq!(backoff.delay, Duration::from_millis(delay));
            backoff.next_delay();
            backoff.session_ended(STABLE_AFTER / 2);
        }
        backoff.session_ended(STABLE_AFTER);
        assert_eq!(backoff.delay, Duration::ZERO);

        let opened = retry(WITHIN, lost("first"), &mut backoff, || async { Ok(()) });
        opened.await.expect("the first attempt succeeds");
        assert_eq!(backoff.delay, FIRST_BACKOFF, "of the next session");
    }
}
