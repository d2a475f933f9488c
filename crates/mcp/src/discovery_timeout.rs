//! Timeout for `server/discover`, the request that selects the MCP version.

use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use tokio::time::Instant;

/// Detects servers that never respond to `server/discover`.
///
/// Servers of older MCP versions should respond with an error, but some ignore unknown
/// requests. For those this produces the error after a timeout, and drops the late
/// response.
#[derive(Debug)]
pub(crate) struct DiscoveryTimeout {
    timeout: Duration,
    /// The request that has no response yet, with its deadline.
    pending: Option<(RequestId, Instant)>,
    timed_out: Option<RequestId>,
}

impl DiscoveryTimeout {
    pub(crate) fn new(timeout: Duration) -> Self {
        DiscoveryTimeout {
            timeout,
            pending: None,
            timed_out: None,
        }
    }

    /// Observes an outgoing message.
    pub(crate) fn on_send(&mut self, message: &ClientJsonRpcMessage, now: Instant) {
        if let JsonRpcMessage::Request(request) = message
            && let ClientRequest::DiscoverRequest(_) = request.request
        {
            self.pending = Some((request.id.clone(), now + self.timeout));
        }
    }

    /// Observes an incoming message. Returns false if it must be dropped.
    pub(crate) fn on_receive(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let response_to = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        self.pending.take_if(|(id, _)| response_to == Some(&*id));
        response_to.is_none() || response_to != self.timed_out.as_ref()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref().map(|(_, deadline)| *deadline)
    }

    /// Returns the error response that replaces the missing one, once the deadline has
    /// passed.
    pub(crate) fn poll_timeout(&mut self, now: Instant) -> Option<ServerJsonRpcMessage> {
        let (id, _) = self.pending.take_if(|(_, deadline)| now >= *deadline)?;
        self.timed_out = Some(id.clone());
        let message = "no response to server/discover";
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None);
        Some(JsonRpcMessage::error(error, Some(id)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pending(now: Instant) -> DiscoveryTimeout {
        let mut discovery = DiscoveryTimeout::new(Duration::from_secs(3));
        let request = json!({
            "jsonrpc": "2.0", "id": 0, "method": "server/discover",
            "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        discovery.on_send(&serde_json::from_value(request).unwrap(), now);
        discovery
    }

    fn response(id: i64) -> ServerJsonRpcMessage {
        let response = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        serde_json::from_value(response).unwrap()
    }

    #[test]
    fn response_in_time_clears_the_deadline() {
        let now = Instant::now();
        let mut discovery = pending(now);
        assert_eq!(discovery.deadline(), Some(now + Duration::from_secs(3)));
        assert!(discovery.on_receive(&response(7)), "another response");
        assert!(discovery.on_receive(&response(0)));
        assert_eq!(discovery.deadline(), None);
        assert!(
            discovery
                .poll_timeout(now + Duration::from_secs(9))
                .is_none()
        );
    }

    #[test]
    fn timeout_produces_an_error_and_drops_the_late_response() {
        let now = Instant::now();
        let mut discovery = pending(now);
        assert!(
            discovery
                .poll_timeout(now + Duration::from_secs(2))
                .is_none()
        );
        let error = discovery
            .poll_timeout(now + Duration::from_secs(3))
            .unwrap();
        let JsonRpcMessage::Error(error) = error else {
            panic!("{error:?}")
        };
        assert_eq!(error.id, Some(RequestId::Number(0)));
        assert_eq!(error.error.code, ErrorCode::METHOD_NOT_FOUND);
        assert!(!discovery.on_receive(&response(0)));
        assert!(discovery.on_receive(&response(1)));
    }

    #[test]
    fn other_requests_have_no_deadline() {
        let mut discovery = DiscoveryTimeout::new(Duration::ZERO);
        let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        discovery.on_send(&serde_json::from_value(ping).unwrap(), Instant::now());
        assert_eq!(discovery.deadline(), None);
    }
}
