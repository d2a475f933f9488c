//! How a server stands.

use std::sync::Arc;

use crate::{Failure, session::Session};

/// How a server stands.
#[derive(Clone, Debug)]
pub enum Status {
    /// It is being started, perhaps again.
    Starting,
    /// It can be used.
    Ready,
    /// It can't be used, and nothing will change that.
    Failed(Arc<Failure>),
    /// Nobody wants it any more.
    Cancelled,
}

/// The same, for those who use it.
#[derive(Clone)]
pub(super) enum State {
    Starting,
    Ready(Arc<Session>),
    Failed(Arc<Failure>),
    Cancelled,
}

impl State {
    pub(super) fn status(&self) -> Status {
        match self {
            State::Starting => Status::Starting,
            State::Ready(_) => Status::Ready,
            State::Failed(why) => Status::Failed(Arc::clone(why)),
            State::Cancelled => Status::Cancelled,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        !matches!(self, State::Starting)
    }
}
