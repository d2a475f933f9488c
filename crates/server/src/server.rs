//! The server: what all connections share.

use std::{sync::Arc, time::Duration};

use outpost_engine::{Engine, Presence};
use outpost_fetch::Fetcher;
use outpost_rpc::{Framing, ReadHalf, Role, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Host, Settings, connection};

/// A running server; clones name the same one.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    settings: Settings,
    host: Host,
    /// Makes HTTP requests for clients.
    fetcher: Fetcher,
    /// A place for each connection.
    places: Arc<Semaphore>,
    /// A place for each file operation: they block, and what else blocks must
    /// not wait for them.
    file_threads: Semaphore,
    /// Every connection's tasks.
    tasks: TaskTracker,
    /// Cancelled when the server ends: nobody accepts, connections close.
    ending: CancellationToken,
}

/// A place among the connections, which counts as somebody being there.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _presence: Presence,
}

/// A byte stream that carries messages, and what was read of it already.
pub(crate) struct Transport {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
    pub(crate) framing: Framing,
    pub(crate) early: bytes::Bytes,
    pub(crate) peer: Peer,
}

/// How the service of a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// One of the two sides has ended it, or it broke.
    Over,
    /// Another connection has taken its session; the other side may know
    /// nothing of it.
    Replaced,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Proven to be the user that the server runs as.
    Owner,
    /// Whoever can reach the listener.
    Anybody,
}

impl Server {
    /// A server with no listeners yet.
    #[must_use]
    pub fn new(engine: Engine, host: Host, settings: Settings) -> Self {
        Server {
            shared: Arc::new(Shared {
                places: Arc::new(Semaphore::new(
                    settings.max_connections.min(Semaphore::MAX_PERMITS),
                )),
                file_threads: Semaphore::new(settings.file_threads),
                engine,
                settings,
                host,
                fetcher: Fetcher::new(),
                tasks: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn host(&self) -> &Host {
        &self.shared.host
    }

    pub(crate) fn file_threads(&self) -> &Semaphore {
        &self.shared.file_threads
    }

    pub(crate) fn fetcher(&self) -> &Fetcher {
        &self.shared.fetcher
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.shared.ending
    }

    /// A place for one more connection, if there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.shared.places).try_acquire_owned().ok()?;
        Some(Place {
            _permit: permit,
            _presence: self.shared.engine.attendance().enter(),
        })
    }

    /// Waits until there has been nothing to do for so long: no connection, and
    /// no process that is starting, running or still readable.
    pub async fn idle_for(&self, span: Duration) {
        self.shared.engine.attendance().deserted_for(span).await;
    }

    /// Serves one stream of lines until its input ends, or until another
    /// connection has taken its session.
    pub async fn serve_lines(&self, read: ReadHalf, write: WriteHalf) -> Parting {
        let _presence = self.shared.engine.attendance().enter();
        let transport = Transport {
            read,
            write,
            framing: Framing::Lines,
            early: bytes::Bytes::new(),
            peer: Peer::Anybody,
        };
        connection::run(self.clone(), transport).await
    }

    /// Serves one stream of WebSocket frames, its handshake done; for tests and
    /// for those who bring their own listener.
    pub async fn serve_websocket(&self, read: ReadHalf, write: WriteHalf, peer: Peer) {
        let _presence = self.shared.engine.attendance().enter();
        let transport = Transport {
            read,
            write,
            framing: Framing::WebSocket(Role::Server),
            early: bytes::Bytes::new(),
            peer,
        };
        connection::run(self.clone(), transport).await;
    }

    /// Ends everything: nobody is let in, connections are closed with code
    /// 1001, processes are ended with the ladder. Says whether all of it went
    /// in time.
    pub async fn shutdown(&self) -> bool {
        let within = self.shared.settings.shutdown_within;
        self.shared.ending.cancel();
        let engine = self.shared.engine.shutdown(within);
        self.shared.tasks.close();
        let connections = tokio::time::timeout(within, self.shared.tasks.wait());
        let (processes_gone, connections_gone) = tokio::join!(engine, connections);
        processes_gone && connections_gone.is_ok()
    }

    /// Kills every process at once, for an end that can't wait.
    pub fn kill_all(&self) {
        self.shared.engine.kill_all();
    }

    /// How long [`Server::shutdown`] may take.
    #[must_use]
    pub fn shutdown_within(&self) -> Duration {
        self.shared.settings.shutdown_within
    }
}
