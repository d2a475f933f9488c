//! Opens or resumes a session on a connection.

use std::collections::BTreeMap;

use outpost_protocol::{
    Delivery, Empty, INITIALIZED, InitializeParams, Method, ReceivedInitializeResult, code,
};

use super::{CallError, Connection};
use crate::{DeliveryMode, RemoteOptions, remote::recovery::AttemptError};

/// The session that a handshake asks for.
pub(crate) enum SessionRequest<'a> {
    New,
    Resume {
        id: &'a str,
        /// Whether to take the session over from another connection.
        takeover: bool,
        /// The last event that this client has of each process.
        from: BTreeMap<String, u64>,
    },
}

/// Performs the handshake. After a rejection, it may be repeated on the same connection.
pub(crate) async fn initialize(
    connection: &Connection,
    options: &RemoteOptions,
    session: SessionRequest<'_>,
) -> Result<ReceivedInitializeResult, CallError> {
    let (resume, takeover, from) = match session {
        SessionRequest::New => (None, false, BTreeMap::new()),
        SessionRequest::Resume { id, takeover, from } => (Some(id.to_owned()), takeover, from),
    };
    let params = InitializeParams {
        client_name: Some(options.client_name.clone()),
        session_label: options.session_label.clone().filter(|_| resume.is_none()),
        detached_ttl_ms: options.lease.into(),
        takeover,
        // Older servers ignore this and do not announce it in the response.
        delivery: Some(match options.delivery {
            DeliveryMode::AckedIfSupported => Delivery::Acked,
            DeliveryMode::Push => Delivery::Push,
        }),
        resume_from: from,
        resume_session_id: resume.clone(),
        ..InitializeParams::default()
    };
    let response = connection.call(Method::Initialize, &params).await;
    let initialize_result = response.map_err(|error| redact_session(error, resume.as_deref()))?;
    connection.notify(INITIALIZED, &Empty {});
    Ok(initialize_result)
}

/// Classifies a failed handshake for the recovery.
pub(crate) fn attempt_error(error: CallError) -> AttemptError {
    match error {
        CallError::Lost(reason) => AttemptError::Unreachable {
            reason,
            permanent: false,
        },
        CallError::Rejected(error) if error.code == code::SESSION_ATTACHED => {
            AttemptError::StillAttached
        }
        CallError::Rejected(error) if error.code == code::OVERLOADED => AttemptError::Overloaded,
        CallError::Rejected(error) => AttemptError::Rejected {
            reason: error.to_string(),
        },
        CallError::InvalidResponse(method, error) => AttemptError::Rejected {
            reason: format!("invalid response to {method}: {error}"),
        },
    }
}

/// Shortens the session id in an error. Servers name the session that they reject, but the id is
/// a secret: it grants access to the session.
fn redact_session(error: CallError, session: Option<&str>) -> CallError {
    match (error, session) {
        (CallError::Rejected(mut error), Some(id)) if !id.is_empty() => {
            let shown: String = id.chars().take(8).collect();
            error.message = error.message.replace(id, &format!("{shown}…"));
            CallError::Rejected(error)
        }
        (error, _) => error,
    }
}
