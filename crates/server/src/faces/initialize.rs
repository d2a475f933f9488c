//! `initialize`: opens a session, and says who we are.

use outpost_engine::{Epoch, Session};
use outpost_protocol::{
    Delivery, InitializeParams, InitializeResult, PROTOCOL_VERSION, RpcError, ServerCapabilities,
    ServerInfo,
};

use crate::{Server, host::VERSION};

/// A session that was opened, and what the client hears of it.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) epoch: Epoch,
    pub(crate) result: InitializeResult,
}

pub(crate) fn initialize(server: &Server, params: &InitializeParams) -> Result<Opened, RpcError> {
    if let Some(id) = &params.resume_session_id {
        return Err(RpcError::invalid_request(format!(
            "unknown session id {id}"
        )));
    }
    if params.delivery == Some(Delivery::Acked) {
        return Err(RpcError::invalid_params(
            "delivery `acked` is not supported",
        ));
    }
    let (session, epoch) = server.engine().open_session();
    tracing::info!(session = %session.id(), "session opened");
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
            close_stdin: true,
            resize: true,
            signals: true,
            timeouts: true,
            process_list: true,
            terminate_tree: true,
            ..ServerCapabilities::default()
        },
    };
    Ok(Opened {
        session,
        epoch,
        result,
    })
}
