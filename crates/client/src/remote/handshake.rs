//! A session is opened, or taken up again.

use std::collections::BTreeMap;

use outpost_protocol::{Delivery, Empty, INITIALIZED, InitializeParams, Method, Welcome, code};

use super::{
    DeliveryChoice,
    core::Core,
    line::{CallError, Line},
    recovery::Trouble,
};

/// Which session is wanted.
pub(super) enum Session<'a> {
    New,
    /// This one, from another client's hands perhaps.
    Resume {
        id: &'a str,
        takeover: bool,
        /// Where to go on with each process.
        from: BTreeMap<String, u64>,
    },
}

impl Core {
    /// Shakes hands. Where it is refused it may be tried again.
    pub(super) async fn shake_hands(
        &self,
        line: &Line,
        session: Session<'_>,
    ) -> Result<Welcome, CallError> {
        let options = &self.options;
        let (resume, takeover, from) = match session {
            Session::New => (None, false, BTreeMap::new()),
            Session::Resume { id, takeover, from } => (Some(id.to_owned()), takeover, from),
        };
        let params = InitializeParams {
            client_name: Some(options.client_name.clone()),
            session_label: options.session_label.clone().filter(|_| resume.is_none()),
            detached_ttl_ms: options.lease.into(),
            takeover,
            // A server that knows nothing of this ignores it, and doesn't announce
            // it in its answer.
            delivery: Some(match options.delivery {
                DeliveryChoice::Auto => Delivery::Acked,
                DeliveryChoice::Push => Delivery::Push,
            }),
            resume_from: from,
            resume_session_id: resume.clone(),
            ..InitializeParams::default()
        };
        let answer = line.call(Method::Initialize, &params).await;
        let welcome = answer.map_err(|error| hide(error, resume.as_deref()))?;
        line.notify(INITIALIZED, &Empty {});
        Ok(welcome)
    }
}

/// What a failed handshake means for a connection that is to be brought back.
pub(super) fn trouble(error: CallError) -> Trouble {
    match error {
        CallError::Lost(reason) => Trouble::Unreachable {
            reason,
            for_good: false,
        },
        CallError::Refused(refusal) if refusal.code == code::SESSION_ATTACHED => {
            Trouble::StillAttached
        }
        CallError::Refused(refusal) if refusal.code == code::OVERLOADED => Trouble::Overloaded,
        CallError::Refused(refusal) => Trouble::Refused {
            reason: refusal.to_string(),
        },
        CallError::Nonsense(method, error) => Trouble::Refused {
            reason: format!("the answer to {method} makes no sense: {error}"),
        },
    }
}

/// Servers name the session that they refuse, and whoever reads an error must
/// not be able to take it.
fn hide(error: CallError, session: Option<&str>) -> CallError {
    match (error, session) {
        (CallError::Refused(mut refusal), Some(id)) if !id.is_empty() => {
            let shown: String = id.chars().take(8).collect();
            refusal.message = refusal.message.replace(id, &format!("{shown}…"));
            CallError::Refused(refusal)
        }
        (error, _) => error,
    }
}
