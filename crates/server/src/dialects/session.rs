//! `session/close` and `session/list`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outpost_engine::Session;
use outpost_protocol::{Empty, ErrorKind, RpcError, SessionEntry, SessionListResult};

use super::exec;
use crate::{
    Peer,
    connection::{Caller, Reply},
};

/// Ends a session. Responds when all its processes have ended.
pub(crate) async fn close(caller: Caller, reply: Reply) {
    tracing::info!(session = %caller.session.id(), by_owner = caller.cross_session, "session closed");
    caller.server.engine().end_session(&caller.session).await;
    reply.send(Ok(Empty {}));
}

/// Lists all sessions of the server. For the owner only, because session ids are
/// credentials.
pub(crate) fn list(caller: &Caller) -> Result<SessionListResult, RpcError> {
    if caller.peer != Peer::Owner {
        return Err(RpcError::invalid_request(
            "session/list is for the server's owner; connect over a unix socket as the same user",
        )
        .with_kind(ErrorKind::Forbidden));
    }
    let sessions = caller.server.engine().list_sessions();
    Ok(SessionListResult {
        sessions: sessions.iter().map(entry).collect(),
    })
}

fn entry(session: &Session) -> SessionEntry {
    let left = session
        .expires()
        .map(|expires| expires.saturating_duration_since(tokio::time::Instant::now().into_std()));
    SessionEntry {
        session_id: session.id().reveal().to_owned(),
        label: session.label(),
        attached: session.is_attached(),
        created_at_ms: unix_millis(session.created_at(), Duration::ZERO),
        expires_at_ms: left.map(|left| unix_millis(SystemTime::now(), left)),
        processes: exec::list(session).processes,
    }
}

fn unix_millis(time: SystemTime, offset: Duration) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since + offset).as_millis() as u64
}
