//! `initialize`, `session/close`, `session/lease` and `session/list`.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use outpost_engine::{Epoch, Link, ResumeOptions, Session, SessionOptions, Ttl};
use outpost_protocol::{
    AccessScope, InitializeParams, InitializeResult, Override, PROTOCOL_VERSION, RpcError,
    ServerCapabilities, ServerInfo, SessionCloseResult, SessionEntry, SessionLeaseParams,
    SessionLeaseResult, SessionListResult,
};

use crate::{
    Settings,
    connection::{Caller, Connection},
    convert,
    host::VERSION,
};

/// Size limit of `sessionLabel`.
const MAX_LABEL_BYTES: usize = 1024;

/// Opens or resumes a session. Returns it with the result to send.
pub(crate) fn initialize(
    connection: &Arc<Connection>,
    params: &InitializeParams,
) -> Result<(Session, Epoch, InitializeResult), RpcError> {
    // The label is part of every `session/list`.
    if let Some(label) = &params.session_label {
        convert::check_length("sessionLabel", label, MAX_LABEL_BYTES)?;
    }
    let server = &connection.server;
    let ttl = lease(&server.settings, params.detached_ttl_ms)?;
    let delivery = params.delivery;
    let link: Arc<dyn Link> = Arc::clone(connection) as Arc<dyn Link>;
    let engine = &server.engine;
    let (session, epoch) = match &params.resume_session_id {
        Some(id) => {
            let resume = ResumeOptions {
                peer: connection.peer,
                takeover: params.takeover,
                delivery,
                ttl,
            };
            engine
                .resume_session(id, resume, link)
                .map_err(|error| convert::resume_error(error, id))?
        }
        None => {
            let options = SessionOptions {
                peer: connection.peer,
                principal: Some(connection.principal.name.clone()),
                ttl: ttl.unwrap_or(Ttl::For(server.settings.session_ttl)),
                label: params.session_label.clone(),
                delivery: delivery.unwrap_or_default(),
            };
            let opened = engine.open_session(options, link);
            opened.ok_or_else(RpcError::overloaded)?
        }
    };
    let resumed = params.resume_session_id.is_some();
    tracing::info!(session = %session.id(), resumed, "session attached");
    let host = &server.host;
    let result = InitializeResult {
        session_id: session.id().reveal().to_owned(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        server_info: ServerInfo {
            name: "outpost".to_owned(),
            version: VERSION.to_owned(),
        },
        user_agent: format!("outpost/{VERSION}"),
        codex_home: host.config_folder.to_string_lossy().into_owned(),
        platform_os: std::env::consts::OS.to_owned(),
        platform_family: std::env::consts::FAMILY.to_owned(),
        environment_info: connection.environment_info(),
        capabilities: ServerCapabilities {
            acked: true,
            close_stdin: true,
            resize: true,
            signals: true,
            timeouts: true,
            process_list: true,
            takeover: true,
            terminate_tree: true,
            fs_write_stream: true,
            fs_watch: true,
            limits: true,
            network_policies: true,
            process_network: true,
            strict: true,
            // A capability is announced only where it works.
            session_list: connection.lists_sessions(),
            ..ServerCapabilities::default()
        },
    };
    Ok((session, epoch, result))
}

/// Returns the requested lease, or `None` for the default.
fn lease(settings: &Settings, requested: Override<u64>) -> Result<Option<Ttl>, RpcError> {
    let ttl = match requested {
        Override::Unspecified => return Ok(None),
        Override::Off => Ttl::Unlimited,
        Override::Value(millis) => Ttl::For(Duration::from_millis(millis)),
    };
    match (ttl, settings.max_session_ttl) {
        (_, Ttl::Unlimited) => Ok(Some(ttl)),
        (Ttl::For(requested), Ttl::For(max)) if requested <= max => Ok(Some(ttl)),
        (_, Ttl::For(max)) => Err(RpcError::invalid_params(format!(
            "detachedTtlMs must be a number of at most {}",
            max.as_millis()
        ))),
    }
}

/// Changes the lease of the caller's session.
pub(crate) fn set_lease(
    caller: &Caller,
    params: SessionLeaseParams,
) -> Result<SessionLeaseResult, RpcError> {
    let settings = &caller.connection.server.settings;
    let ttl = lease(settings, params.detached_ttl_ms)?;
    tracing::debug!(session = %caller.session.id(), ?ttl, "session lease changed");
    let detached_ttl_ms = match caller.session.set_ttl(ttl) {
        Ttl::For(time) => Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        Ttl::Unlimited => None,
    };
    Ok(SessionLeaseResult { detached_ttl_ms })
}

/// Ends a session. Responds when all its processes have ended, or names those that were killed and
/// not seen to end.
pub(crate) async fn close(caller: Caller) -> Result<SessionCloseResult, RpcError> {
    tracing::info!(session = %caller.session.id(), by_owner = caller.cross_session, "session closed");
    let engine = &caller.connection.server.engine;
    let still_alive = engine.end_session(&caller.session).await;
    if !still_alive.is_empty() {
        tracing::warn!(session = %caller.session.id(), ?still_alive, "killed processes are not gone");
    }
    Ok(SessionCloseResult { still_alive })
}

/// Lists the sessions that the caller may use. Others are left out, because session ids are credentials.
pub(crate) fn list(connection: &Connection) -> Result<SessionListResult, RpcError> {
    if !connection.lists_sessions() {
        return Err(RpcError::out_of_scope(AccessScope::Admin));
    }
    let engine = &connection.server.engine;
    let (sessions, now) = (engine.list_sessions(), engine.now());
    let listed = sessions.iter();
    let listed = listed.filter(|session| connection.is_listed(session));
    let is_admin = connection.principal.has(AccessScope::Admin);
    Ok(SessionListResult {
        sessions: listed
            .map(|session| entry(session, &connection.principal.name, now))
            .collect(),
        // These sessions belonged to any principal of the server before.
        ended_at_start: if is_admin {
            engine.ended_at_start().to_vec()
        } else {
            Vec::new()
        },
    })
}

/// Describes a session to the principal `caller`.
fn entry(session: &Session, caller: &str, now: Instant) -> SessionEntry {
    let left = session
        .expires()
        .map(|expires| expires.saturating_duration_since(now));
    SessionEntry {
        session_id: session.id().reveal().to_owned(),
        label: session.label(),
        principal: session
            .principal()
            .filter(|principal| *principal != caller)
            .map(str::to_owned),
        attached: session.is_attached(),
        created_at_ms: unix_millis(session.created_at(), Duration::ZERO),
        expires_at_ms: left.map(|left| unix_millis(SystemTime::now(), left)),
        processes: session.list(),
    }
}

fn unix_millis(time: SystemTime, offset: Duration) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since + offset).as_millis() as u64
}
