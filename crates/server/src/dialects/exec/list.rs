//! `process/list`.

use outpost_engine::Session;
use outpost_protocol::ListResult;

/// Lists the processes of a session, including those that are starting, oldest first.
pub(crate) fn list(session: &Session) -> ListResult {
    ListResult {
        processes: session.list(),
    }
}
