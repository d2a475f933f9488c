//! Requests, their answers, and the handshake.

use serde_json::{Value, json};

use super::Client;

/// An error that came as an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// `code`
    pub code: i64,
    /// `message`
    pub message: String,
}

impl Client {
    /// `initialize` as a client of the exec-server says it, and `initialized`.
    pub async fn shake_hands(&self) -> Value {
        let answer = self
            .call(
                "initialize",
                json!({"clientName": "testkit", "resumeSessionId": null}),
            )
            .await;
        self.notify("initialized", json!({})).await;
        answer
    }

    /// The same for a session that another connection has, which has to let go of it.
    pub async fn take_over(&self, session: &Value) -> Value {
        let resume = json!({"clientName": "testkit", "resumeSessionId": session, "takeover": true});
        let answer = self.call("initialize", resume).await;
        self.notify("initialized", json!({})).await;
        answer
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"method": method, "params": params}))
            .await;
    }

    /// Sends a request, without waiting for its answer.
    pub async fn request(&self, method: &str, params: Value) -> i64 {
        let id = self.fresh_id();
        self.send(&json!({"id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Waits for the answer to a request, whole.
    pub async fn answer_message(&self, id: impl Into<Value>) -> Value {
        let id = id.into().to_string();
        self.until(&format!("the answer to {id}"), |seen| {
            let answer = seen.answers.get(&id)?.first()?;
            Some(Value::clone(answer))
        })
        .await
    }

    /// Waits for the answer to a request.
    pub async fn answer(&self, id: impl Into<Value>) -> Result<Value, RpcError> {
        let message = self.answer_message(id).await;
        match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(RpcError::of(&message)),
        }
    }

    /// Whether a request has been answered already.
    pub fn is_answered(&self, id: i64) -> bool {
        self.inbox
            .look(|seen| seen.answers.contains_key(&id.to_string()))
    }

    /// Sends a request and waits for its answer.
    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// Sends a request that must succeed.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        match self.try_call(method, params).await {
            Ok(result) => result,
            Err(error) => panic!("{method} failed: {error:?}"),
        }
    }

    /// Sends a request that must fail.
    pub async fn fails(&self, method: &str, params: Value) -> RpcError {
        match self.try_call(method, params).await {
            Ok(result) => panic!("{method} should have failed, but gave {result}"),
            Err(error) => error,
        }
    }

    /// A request that is answered without any work, to know that the connection goes on.
    pub async fn is_alive(&self) {
        let status = self.call("environment/status", json!({})).await;
        assert_eq!(status, json!({"status": "ready"}));
    }
}

impl RpcError {
    /// The error in an answer.
    pub fn of(message: &Value) -> Self {
        let error = &message["error"];
        RpcError {
            code: error["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("no error in {message}")),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Code and message, for comparing.
    pub fn parts(&self) -> (i64, &str) {
        (self.code, &self.message)
    }
}
