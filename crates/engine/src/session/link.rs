//! A session's view of its connection.

use super::{Epoch, Session};
use crate::Process;

/// The connection that is attached to a session.
pub trait Link: Send + Sync {
    /// Another connection tried to resume the session. Checks whether the peer is alive, and
    /// drops the connection if not.
    fn probe(&self);

    /// Another connection has taken over the session.
    fn replaced(&self);

    /// A process has started in the session. Its events go to this connection.
    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process);
}
