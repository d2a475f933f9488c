//! What a session knows of the connection it is attached to.

use super::{Epoch, Session};
use crate::Process;

/// The connection that a session is attached to.
pub trait Link: Send + Sync {
    /// Somebody else wants the session: see whether the peer still stirs, and
    /// drop the connection if it doesn't.
    fn probe(&self);

    /// Another connection has the session now.
    fn replaced(&self);

    /// A process has started in the session: from now on its events are for
    /// this connection.
    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process);
}

/// What counts as delivered to the owner of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// What was written to its connection. Nobody attached, nobody waited for.
    #[default]
    Push,
    /// What it has acknowledged, attached or not.
    Acked,
}
