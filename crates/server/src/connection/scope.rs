//! The processes of one dialect on one connection.

use std::sync::Arc;

use outpost_engine::{Epoch, Process, Session, Start, StartError};
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;

use super::Order;
use crate::{
    Server,
    dialects::feed::{EventEncoder, Feeds},
};

/// A private session that ends with its connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Scope {
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    outbox: Outbox,
    /// Feeds of the connection.
    feeds: Arc<Feeds>,
    /// Private: its id is not disclosed.
    session: Session,
    epoch: Epoch,
    /// One permit per process start of the connection that may run at once.
    start_permits: Arc<Semaphore>,
    order: Order,
}

impl Scope {
    /// Opens a scope. Returns `None` if the server is shutting down.
    pub(super) fn open(
        server: &Server,
        outbox: &Outbox,
        feeds: &Arc<Feeds>,
        start_permits: &Arc<Semaphore>,
    ) -> Option<Self> {
        let (session, epoch) = server.engine().open_private_session()?;
        Some(Scope {
            shared: Arc::new(Shared {
                server: server.clone(),
                outbox: outbox.clone(),
                feeds: Arc::clone(feeds),
                session,
                epoch,
                start_permits: Arc::clone(start_permits),
                order: Order::new(server.tasks()),
            }),
        })
    }

    /// Ends the session and its processes.
    pub(super) fn end(&self) {
        let engine = self.shared.server.engine();
        engine.end_private_session(&self.shared.session);
    }

    pub(super) fn order(&self) -> &Order {
        &self.shared.order
    }

    pub(crate) fn server(&self) -> &Server {
        &self.shared.server
    }

    pub(crate) fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Starts a process. Its name is reserved before the first await.
    pub(crate) async fn start(&self, start: Start) -> Result<Process, StartError> {
        let reservation = self.shared.session.reserve(&start)?;
        let _permit = self.shared.start_permits.acquire().await;
        let engine = self.shared.server.engine();
        engine.start(&self.shared.session, reservation, start).await
    }

    /// Starts to push the process's events to the client.
    pub(crate) fn follow<T: EventEncoder>(&self, process: &Process, encoder: T) {
        let owner = (&self.shared.session, self.shared.epoch);
        let feeds = &self.shared.feeds;
        feeds.open(&self.shared.outbox, owner, process, None, encoder);
    }
}
