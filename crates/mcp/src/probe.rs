//! The question by which a server of the newest revision is told from an older
//! one, and what happens when nobody answers it.

use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use tokio::time::Instant;

/// Older servers are expected to refuse `server/discover`. Some say nothing at
/// all to a question they don't know; for those the refusal is made up here, and
/// an answer that comes later is kept from the session, which has gone on.
#[derive(Debug)]
pub(crate) struct Probe {
    patience: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle,
    Asked { id: RequestId, until: Instant },
    GivenUp { id: RequestId },
}

impl Probe {
    pub(crate) fn new(patience: Duration) -> Self {
        Probe {
            patience,
            state: State::Idle,
        }
    }

    /// Looks at what is being sent.
    pub(crate) fn sent(&mut self, message: &ClientJsonRpcMessage, now: Instant) {
        if let JsonRpcMessage::Request(request) = message
            && let ClientRequest::DiscoverRequest(_) = request.request
        {
            self.state = State::Asked {
                id: request.id.clone(),
                until: now + self.patience,
            };
        }
    }

    /// Looks at what was received; false if the session must not see it.
    pub(crate) fn received(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let answered = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        match &self.state {
            State::Asked { id, .. } if answered == Some(id) => {
                self.state = State::Idle;
                true
            }
            State::GivenUp { id } => answered != Some(id),
            State::Asked { .. } | State::Idle => true,
        }
    }

    /// When the answer is to be given up.
    pub(crate) fn until(&self) -> Option<Instant> {
        match self.state {
            State::Asked { until, .. } => Some(until),
            State::Idle | State::GivenUp { .. } => None,
        }
    }

    /// The refusal in place of an answer, once it is overdue.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<ServerJsonRpcMessage> {
        let State::Asked { id, until } = &self.state else {
            return None;
        };
        if now < *until {
            return None;
        }
        let id = id.clone();
        let words = "server/discover was not answered";
        let refusal = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
        self.state = State::GivenUp { id: id.clone() };
        Some(JsonRpcMessage::error(refusal, Some(id)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(now: Instant) -> Probe {
        let mut probe = Probe::new(Duration::from_secs(3));
        let question = json!({
            "jsonrpc": "2.0", "id": 0, "method": "server/discover",
            "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        probe.sent(&serde_json::from_value(question).unwrap(), now);
        probe
    }

    fn answer(id: i64) -> ServerJsonRpcMessage {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn an_answer_in_time_ends_the_matter() {
        let now = Instant::now();
        let mut probe = asked(now);
        assert_eq!(probe.until(), Some(now + Duration::from_secs(3)));
        assert!(probe.received(&answer(7)), "another answer");
        assert!(probe.received(&answer(0)));
        assert_eq!(probe.until(), None);
        assert!(probe.overdue(now + Duration::from_secs(9)).is_none());
    }

    #[test]
    fn silence_is_a_refusal_and_what_comes_late_is_not_heard() {
        let now = Instant::now();
        let mut probe = asked(now);
        assert!(probe.overdue(now + Duration::from_secs(2)).is_none());
        let refusal = probe.overdue(now + Duration::from_secs(3)).unwrap();
        let JsonRpcMessage::Error(refusal) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!(refusal.id, Some(RequestId::Number(0)));
        assert_eq!(refusal.error.code, ErrorCode::METHOD_NOT_FOUND);
        assert!(!probe.received(&answer(0)));
        assert!(probe.received(&answer(1)));
    }

    #[test]
    fn other_questions_are_none_of_its_business() {
        let mut probe = Probe::new(Duration::ZERO);
        let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        probe.sent(&serde_json::from_value(ping).unwrap(), Instant::now());
        assert_eq!(probe.until(), None);
    }
}
