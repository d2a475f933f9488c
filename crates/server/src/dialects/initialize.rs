//! `initialize`: opens or resumes a session.

use std::{sync::Arc, time::Duration};

use outpost_engine::{Epoch, Link, Resume, Session, SessionOptions, Ttl};
use outpost_protocol::{
    DetachedTtl, InitializeParams, InitializeResult, PROTOCOL_VERSION, RpcError,
    ServerCapabilities, ServerInfo,
};

use crate::{Server, Settings, connection::ConnectionLink, convert, host::VERSION};

/// Size limit of `sessionLabel`.
const MAX_LABEL_BYTES: usize = 1024;

/// An opened session, and the result to send.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) epoch: Epoch,
    pub(crate) result: InitializeResult,
}

pub(crate) fn initialize(
    server: &Server,
    params: &InitializeParams,
    link: &Arc<ConnectionLink>,
) -> Result<Opened, RpcError> {
    check_label(params.session_label.as_deref())?;
    let ttl = lease(server.settings(), params.detached_ttl_ms)?;
    let delivery = params.delivery;
    let link: Arc<dyn Link> = Arc::clone(link) as Arc<dyn Link>;
    let engine = server.engine();
    let (session, epoch) = match &params.resume_session_id {
        Some(id) => {
            let resume = Resume {
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
                ttl: ttl.unwrap_or(Ttl::For(server.settings().session_ttl)),
                label: params.session_label.clone(),
                delivery: delivery.unwrap_or_default(),
            };
            let opened = engine.open_session(options, link);
            opened.ok_or_else(RpcError::overloaded)?
        }
    };
    let resumed = params.resume_session_id.is_some();
    tracing::info!(session = %session.id(), resumed, "session attached");
    let host = server.host();
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
        environment_info: host.info.clone(),
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
            ..ServerCapabilities::default()
        },
    };
    Ok(Opened {
        session,
        epoch,
        result,
    })
}

/// Checks the size of the label, which is part of every `session/list`.
fn check_label(label: Option<&str>) -> Result<(), RpcError> {
    match label {
        Some(label) if label.len() > MAX_LABEL_BYTES => Err(RpcError::invalid_params(format!(
            "sessionLabel must be at most {MAX_LABEL_BYTES} bytes long"
        ))),
        _ => Ok(()),
    }
}

/// Returns the requested lease, or `None` for the default.
fn lease(settings: &Settings, requested: DetachedTtl) -> Result<Option<Ttl>, RpcError> {
    let ttl = match requested {
        DetachedTtl::Unspecified => return Ok(None),
        DetachedTtl::Unlimited => Ttl::Unlimited,
        DetachedTtl::Millis(millis) => Ttl::For(Duration::from_millis(millis)),
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
