//! The state of a managed server.

use std::sync::Arc;

use crate::{ServerFailure, session::Session};

/// The status of a server.
#[derive(Clone, Debug)]
pub enum ServerStatus {
    /// The server is starting or restarting.
    Starting,
    /// The server is ready.
    Ready,
    /// The server failed and is not restarted.
    Failed(Arc<ServerFailure>),
    /// The pool was closed.
    Cancelled,
}

/// The status of a server, with the session of a ready one.
#[derive(Clone)]
pub(super) enum State {
    Starting,
    Ready(Arc<Session>),
    Failed(Arc<ServerFailure>),
    Cancelled,
}

impl State {
    pub(super) fn status(&self) -> ServerStatus {
        match self {
            State::Starting => ServerStatus::Starting,
            State::Ready(_) => ServerStatus::Ready,
            State::Failed(why) => ServerStatus::Failed(Arc::clone(why)),
            State::Cancelled => ServerStatus::Cancelled,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        !matches!(self, State::Starting)
    }
}
