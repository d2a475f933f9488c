//! What one face has on one connection: processes that end with it.

use std::sync::Arc;

use outpost_engine::{Epoch, Process, Session, Start, StartError};
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;

use super::Order;
use crate::{
    Server,
    faces::feed::{Feeds, Teller},
};

/// The processes of one face on one connection; clones name the same ones.
#[derive(Clone)]
pub(crate) struct Scope {
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    outbox: Outbox,
    /// The connection's.
    feeds: Arc<Feeds>,
    /// Nobody else knows it.
    session: Session,
    epoch: Epoch,
    /// The connection's: a place for each start that may run at once.
    running: Arc<Semaphore>,
    order: Order,
}

impl Scope {
    /// An empty one; none if the server is ending.
    pub(super) fn open(
        server: &Server,
        outbox: &Outbox,
        feeds: &Arc<Feeds>,
        running: &Arc<Semaphore>,
    ) -> Option<Self> {
        let (session, epoch) = server.engine().open_private_session()?;
        Some(Scope {
            shared: Arc::new(Shared {
                server: server.clone(),
                outbox: outbox.clone(),
                feeds: Arc::clone(feeds),
                session,
                epoch,
                running: Arc::clone(running),
                order: Order::new(server.tasks()),
            }),
        })
    }

    /// The connection is gone: so is everything it ran.
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

    /// Starts a process. Its name is taken before anything is waited for.
    pub(crate) async fn start(&self, start: Start) -> Result<Process, StartError> {
        let reservation = self.shared.session.reserve(&start)?;
        let _place = self.shared.running.acquire().await;
        let engine = self.shared.server.engine();
        engine.start(&self.shared.session, reservation, start).await
    }

    /// Tells the client of a process from now on.
    pub(crate) fn follow<T: Teller>(&self, process: &Process, teller: T) {
        let owner = (&self.shared.session, self.shared.epoch);
        let feeds = &self.shared.feeds;
        feeds.open(&self.shared.outbox, owner, process, None, teller);
    }
}
