//! Questions to the client about targets of a proxy: `network/policyRequest`.

use std::collections::HashMap;

use outpost_protocol::{
    NETWORK_POLICY_REQUEST, NetworkAnswer, NetworkPolicyRequestParams, NetworkPolicyRequestResult,
    RequestId, encode_request,
};
use outpost_rpc::{Outbox, OutgoingMessage};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// The maximum number of questions that wait for their answers.
const MAX_PENDING: usize = 256;

/// The maximum size of a message about a decision. Released clients accept no longer messages.
pub(super) const MAX_BYTES: usize = 8 * 1024;

/// The questions of one connection that wait for their answers.
#[derive(Default)]
pub(crate) struct PolicyRequests {
    state: Mutex<State>,
}

/// The questions that wait for an answer, by id.
#[derive(Default)]
struct State {
    /// The id of the last question. The first one is 1.
    last: i64,
    pending: HashMap<i64, oneshot::Sender<NetworkAnswer>>,
}

impl PolicyRequests {
    /// Sends a question. Returns none if too many wait already, or it is too long.
    pub(super) fn ask(
        &self,
        outbox: &Outbox,
        params: &NetworkPolicyRequestParams,
    ) -> Option<oneshot::Receiver<NetworkAnswer>> {
        let mut state = self.state.lock();
        // The others have given up.
        state.pending.retain(|_, asker| !asker.is_closed());
        if state.pending.len() >= MAX_PENDING {
            return None;
        }
        let id = state.last + 1;
        let mut message = Vec::new();
        encode_request(&mut message, id, NETWORK_POLICY_REQUEST, params).ok()?;
        if message.len() > MAX_BYTES {
            return None;
        }
        state.last = id;
        let (asker, answer) = oneshot::channel();
        state.pending.insert(id, asker);
        outbox.send(OutgoingMessage::new(message));
        Some(answer)
    }

    /// Handles a response; `result` is none for an error. Returns false if there was no question with this
    /// id. An answer that comes too late has no effect.
    pub(super) fn answer(&self, id: &RequestId, result: Option<&RawValue>) -> bool {
        let RequestId::Integer(id) = *id else {
            return false;
        };
        let mut state = self.state.lock();
        if !(1..=state.last).contains(&id) {
            return false;
        }
        let asker = state.pending.remove(&id);
        drop(state);
        let parsed = result.map(|result| serde_json::from_str(result.get()));
        if let (Some(asker), Some(Ok(NetworkPolicyRequestResult { decision }))) = (asker, parsed) {
            let _ = asker.send(decision);
        }
        true
    }

    /// Refuses all questions that wait, because the connection has ended.
    pub(super) fn end(&self) {
        self.state.lock().pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use outpost_protocol::{NetworkProtocol, NetworkTarget};
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn params(host: &str) -> NetworkPolicyRequestParams {
        NetworkPolicyRequestParams {
            process_id: "p".to_owned(),
            request: NetworkTarget {
                protocol: NetworkProtocol::Http,
                host: host.to_owned(),
                port: 80,
            },
        }
    }

    fn answer(requests: &PolicyRequests, id: i64, result: &str) -> bool {
        let result = serde_json::from_str(result).expect("JSON");
        requests.answer(&RequestId::Integer(id), Some(result))
    }

    #[test]
    fn answers_reach_their_questions() {
        let (requests, outbox) = (
            PolicyRequests::default(),
            Outbox::new(CancellationToken::new()),
        );
        let ask = || requests.ask(&outbox, &params("a.test")).expect("asks");
        let mut asked: Vec<_> = (0..5).map(|_| ask()).collect();
        assert!(answer(
            &requests,
            2,
            r#"{"decision":{"type":"allow","more":1}}"#
        ));
        assert!(answer(
            &requests,
            1,
            r#"{"decision":{"type":"deny","reason":"no"}}"#
        ));
        assert!(answer(&requests, 3, r#"{"decision":{"type":"perhaps"}}"#));
        assert!(requests.answer(&RequestId::Integer(4), None), "an error");
        for id in [0, 6, -1] {
            assert!(!answer(&requests, id, "{}"), "{id} was never used");
        }
        assert!(!requests.answer(&RequestId::Text("1".to_owned()), None));
        let answers: Vec<_> = asked.iter_mut().map(|one| one.try_recv().ok()).collect();
        let deny = NetworkAnswer::Deny {
            reason: Some("no".to_owned()),
        };
        assert_eq!(
            answers,
            [Some(deny), Some(NetworkAnswer::Allow), None, None, None]
        );
        assert!(answer(&requests, 1, "{}"), "a second answer has no effect");
        requests.end();
        assert!(asked[4].try_recv().is_err(), "the connection has ended");
    }

    #[test]
    fn questions_are_bounded() {
        let (requests, outbox) = (
            PolicyRequests::default(),
            Outbox::new(CancellationToken::new()),
        );
        let ask = |host: &str| requests.ask(&outbox, &params(host));
        assert!(ask(&"x".repeat(MAX_BYTES)).is_none(), "too long");
        let mut asked: Vec<_> = (0..MAX_PENDING).map(|_| ask("a.test")).collect();
        assert!(asked.iter().all(Option::is_some));
        assert!(ask("a.test").is_none(), "too many");
        // One that has given up makes space.
        asked.pop();
        assert!(ask("a.test").is_some());
    }
}
