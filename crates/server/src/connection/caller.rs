//! The state of a connection that requests need.

use std::sync::Arc;

use outpost_engine::{ResumeError, Session};
use outpost_protocol::{ErrorKind, RpcError};
use outpost_rpc::Outbox;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Peer, Server, convert, dialects::http::Exchanges};

/// A connection after its handshake, as passed to each request.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) session: Session,
    /// One permit per process start that may run at once.
    pub(crate) start_permits: Arc<Semaphore>,
    /// The HTTP requests in flight.
    pub(crate) exchanges: Exchanges,
    /// Cancelled when the connection ends.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection took over the session.
    pub(crate) replaced: CancellationToken,
    /// Tasks of pending long polls.
    pub(crate) long_polls: TaskTracker,
    pub(crate) peer: Peer,
    /// `session` belongs to another client. Reads must not advance that client's cursors.
    pub(crate) cross_session: bool,
}

impl Caller {
    /// Returns the caller for the session that a request names. Only the server's owner may
    /// name another session.
    pub(crate) fn for_session(self, session: Option<&str>) -> Result<Caller, RpcError> {
        let Some(id) = session else {
            return Ok(self);
        };
        if self.peer != Peer::Owner {
            return Err(RpcError::invalid_request(
                "sessionId is for the owner of the server, over a unix socket",
            )
            .with_kind(ErrorKind::Forbidden));
        }
        match self.server.engine().find_session(id) {
            Some(session) => Ok(Caller {
                session,
                cross_session: true,
                ..self
            }),
            None => Err(convert::resume_error(ResumeError::Gone, id)),
        }
    }
}
