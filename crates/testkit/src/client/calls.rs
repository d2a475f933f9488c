//! Requests, responses and the handshake.

use serde_json::{Value, json};

use super::{Client, Received};

/// An error response.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// `code`
    pub code: i64,
    /// `message`
    pub message: String,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The connection was lost; the call may have taken effect.
    Lost,
    /// The server returned an error.
    Rejected(RpcError),
}

impl Client {
    /// Performs the handshake of an exec-server client.
    pub async fn handshake(&self) -> Value {
        self.handshake_with(json!({"clientName": "testkit", "resumeSessionId": null}))
            .await
    }

    /// Performs the handshake and takes over a session that another connection owns.
    pub async fn take_over(&self, session: &Value) -> Value {
        let resume = json!({"clientName": "testkit", "resumeSessionId": session, "takeover": true});
        self.handshake_with(resume).await
    }

    async fn handshake_with(&self, params: Value) -> Value {
        let result = self.call("initialize", params).await;
        self.notify("initialized", json!({})).await;
        result
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"method": method, "params": params}))
            .await;
    }

    /// Sends a request and returns its id.
    pub async fn request(&self, method: &str, params: Value) -> i64 {
        let id = self.fresh_id();
        self.send(&json!({"id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Waits for the whole response message to a request.
    pub async fn response_message(&self, id: impl Into<Value>) -> Value {
        let id = id.into().to_string();
        self.until(&format!("the response to {id}"), |received| {
            received.response(&id)
        })
        .await
    }

    /// Waits for the response to a request.
    pub async fn response(&self, id: impl Into<Value>) -> Result<Value, RpcError> {
        result(&self.response_message(id).await)
    }

    /// Returns true if a request has its response.
    pub fn has_response(&self, id: i64) -> bool {
        self.inbox.borrow().response(&id.to_string()).is_some()
    }

    /// Sends a request over a connection that may be lost, and waits for its response.
    pub(crate) async fn call_or_lost(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let id = self.fresh_id();
        let request = json!({"id": id, "method": method, "params": params});
        let sent = self.try_send_text(&request.to_string()).await;
        sent.map_err(|_| CallError::Lost)?;
        let id = id.to_string();
        let response = self.find(method, |received| received.response(&id)).await;
        result(&response.ok_or(CallError::Lost)?).map_err(CallError::Rejected)
    }

    /// Sends a request and waits for its response.
    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.request(method, params).await;
        self.response(id).await
    }

    /// Sends a request that must succeed.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        match self.try_call(method, params).await {
            Ok(result) => result,
            Err(error) => panic!("{method} failed: {error:?}"),
        }
    }

    /// Sends a request that must fail.
    pub async fn call_fails(&self, method: &str, params: Value) -> RpcError {
        match self.try_call(method, params).await {
            Ok(result) => panic!("{method} should have failed, but returned {result}"),
            Err(error) => error,
        }
    }

    /// Checks with `environment/status` that the connection works.
    pub async fn check_alive(&self) {
        let status = self.call("environment/status", json!({})).await;
        assert_eq!(status, json!({"status": "ready"}));
    }
}

fn result(message: &Value) -> Result<Value, RpcError> {
    match message.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(RpcError::parse(message)),
    }
}

impl Received {
    /// The first response to a request.
    fn response(&self, id: &str) -> Option<Value> {
        let response = self.responses.get(id)?.first()?;
        Some(Value::clone(response))
    }
}

impl RpcError {
    /// Parses the error of a response message.
    pub fn parse(message: &Value) -> Self {
        let error = &message["error"];
        RpcError {
            code: error["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("no error in {message}")),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Code and message, for comparisons.
    pub fn parts(&self) -> (i64, &str) {
        (self.code, &self.message)
    }
}
