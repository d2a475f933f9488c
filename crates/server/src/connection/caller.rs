//! Who asks: what a face needs to know of a connection.

use std::sync::Arc;

use outpost_engine::Session;
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Peer, Server};

/// A connection after its handshake, as its requests see it.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) session: Session,
    /// A place for each ordinary request that may run at once.
    pub(crate) running: Arc<Semaphore>,
    /// Cancelled when the connection is gone, for whoever only waits.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection has taken the session.
    pub(crate) replaced: CancellationToken,
    /// Requests that wait beside everything else.
    pub(crate) asides: TaskTracker,
    /// Who is at the other end.
    pub(crate) peer: Peer,
}
