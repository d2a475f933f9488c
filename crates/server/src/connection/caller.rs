//! Who asks: what a face needs to know of a connection.

use std::sync::Arc;

use outpost_engine::{Epoch, Session};
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{Server, faces::exec::Feeds};

/// A connection after its handshake, as its requests see it.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) session: Session,
    /// Which attachment of the session this connection is.
    pub(crate) epoch: Epoch,
    pub(crate) feeds: Arc<Feeds>,
    /// A place for each ordinary request that may run at once.
    pub(crate) running: Arc<Semaphore>,
    /// Cancelled when the connection is gone, for whoever only waits.
    pub(crate) gone: CancellationToken,
}
