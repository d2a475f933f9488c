//! Who asks: what a face needs to know of a connection.

use std::sync::Arc;

use outpost_engine::{ResumeRefusal, Session};
use outpost_protocol::RpcError;
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Peer, Server, convert, faces::http::Exchanges};

/// A connection after its handshake, as its requests see it.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) session: Session,
    /// A place for each ordinary request that may run at once.
    pub(crate) running: Arc<Semaphore>,
    /// The HTTP requests it has under way.
    pub(crate) exchanges: Exchanges,
    /// Cancelled when the connection is gone, for whoever only waits.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection has taken the session.
    pub(crate) replaced: CancellationToken,
    /// Requests that wait beside everything else.
    pub(crate) asides: TaskTracker,
    /// Who is at the other end.
    pub(crate) peer: Peer,
    /// The session is one that this connection only looks into: nothing that is
    /// done there counts as its client having done it.
    pub(crate) visiting: bool,
}

impl Caller {
    /// Who asks, about the session that a request names; only the owner of the
    /// server may name one.
    pub(crate) fn about(self, session: Option<&str>) -> Result<Caller, RpcError> {
        let Some(id) = session else {
            return Ok(self);
        };
        if self.peer != Peer::Owner {
            return Err(RpcError::invalid_request(
                "sessionId is for the owner of the server, over a unix socket",
            ));
        }
        match self.server.engine().find_session(id) {
            Some(session) => Ok(Caller {
                session,
                visiting: true,
                ..self
            }),
            None => Err(convert::resume_refusal(ResumeRefusal::Gone, id)),
        }
    }
}
