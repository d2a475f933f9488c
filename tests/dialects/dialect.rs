//! Test support for behaviour that `process/spawn` and `command/exec` share.

use std::sync::Arc;

use outpost_testkit::{Client, RpcError, Server, base64, unbase64};
use serde_json::{Value, json};

use crate::over_each_transport;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Spawn,
    Command,
}

/// The exit of a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit_code: i64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The params of the exit notification, or the result.
    pub(crate) whole: Value,
}

/// A started process.
pub(crate) struct Run {
    dialect: Dialect,
    id: String,
    /// The id of the request that started it.
    request: i64,
    /// The number of earlier processes with this id that have ended.
    before: usize,
}

/// Performs the handshake of an app-server client.
pub(crate) async fn app_handshake(client: &Client) {
    let params = json!({
        "clientInfo": {"name": "testkit", "title": null, "version": "1"},
        "capabilities": {"experimentalApi": true},
    });
    client.call("initialize", params).await;
}

/// Runs a test with each dialect over each transport, each time with a new server.
#[expect(
    clippy::print_stderr,
    reason = "a failed test says which dialect it was"
)]
pub(crate) async fn with_every_dialect(test: impl AsyncFn(Dialect, &Server, &Client)) {
    for dialect in [Dialect::Spawn, Dialect::Command] {
        over_each_transport(async |server, client| {
            eprintln!("{dialect:?}:");
            app_handshake(client).await;
            test(dialect, server, client).await;
        })
        .await;
    }
}

impl Dialect {
    /// The method that starts a process.
    pub(crate) fn start(self) -> &'static str {
        match self {
            Dialect::Spawn => "process/spawn",
            Dialect::Command => "command/exec",
        }
    }

    pub(crate) fn key(self) -> &'static str {
        match self {
            Dialect::Spawn => "processHandle",
            Dialect::Command => "processId",
        }
    }

    fn delta(self) -> &'static str {
        match self {
            Dialect::Spawn => "process/outputDelta",
            Dialect::Command => "command/exec/outputDelta",
        }
    }

    pub(crate) fn write(self) -> &'static str {
        match self {
            Dialect::Spawn => "process/writeStdin",
            Dialect::Command => "command/exec/write",
        }
    }

    pub(crate) fn resize(self) -> &'static str {
        match self {
            Dialect::Spawn => "process/resizePty",
            Dialect::Command => "command/exec/resize",
        }
    }

    pub(crate) fn kill(self) -> &'static str {
        match self {
            Dialect::Spawn => "process/kill",
            Dialect::Command => "command/exec/terminate",
        }
    }

    /// The error message for an unknown process.
    pub(crate) fn unknown(self, id: &str) -> String {
        match self {
            Dialect::Spawn => format!("no active process for process handle \"{id}\""),
            Dialect::Command => format!("no active command/exec for process id \"{id}\""),
        }
    }

    /// Params that name a process.
    pub(crate) fn params_for(self, id: &str, mut more: Value) -> Value {
        more[self.key()] = json!(id);
        more
    }

    /// The params that start a script.
    pub(crate) fn sh(self, id: &str, script: &str, more: Value) -> Value {
        let mut params = self.params_for(id, more);
        params["command"] = json!(["/bin/sh", "-c", script]);
        if params.get("cwd").is_none() {
            params["cwd"] = json!("/tmp");
        }
        params
    }

    /// Starts a script. For a spawn, waits for the response.
    pub(crate) async fn begin(self, client: &Client, id: &str, script: &str, more: Value) -> Run {
        let before = self.exit_positions(&client.received(), id).len();
        let request = client
            .request(self.start(), self.sh(id, script, more))
            .await;
        if self == Dialect::Spawn {
            assert_eq!(client.response(request).await, Ok(json!({})));
        }
        Run {
            dialect: self,
            id: id.to_owned(),
            request,
            before,
        }
    }

    /// Runs a script until it exits.
    pub(crate) async fn run(self, client: &Client, id: &str, script: &str, more: Value) -> Outcome {
        self.begin(client, id, script, more).await.end(client).await
    }

    /// Starts a process and expects an error.
    pub(crate) async fn call_fails(self, client: &Client, params: Value) -> RpcError {
        client.call_fails(self.start(), params).await
    }

    pub(crate) async fn write_text(self, client: &Client, id: &str, text: &str) {
        let params = self.params_for(id, json!({"deltaBase64": base64(text)}));
        assert_eq!(client.call(self.write(), params).await, json!({}));
    }

    /// The deltas received for a process, in order.
    pub(crate) fn deltas(self, client: &Client, id: &str) -> Vec<Value> {
        let received = client.received();
        let deltas = received.iter().filter(|message| self.is_delta(message, id));
        deltas.map(|message| message["params"].clone()).collect()
    }

    /// The text received from a stream.
    pub(crate) fn received_output(self, client: &Client, id: &str, stream: &str) -> String {
        let deltas = self.deltas(client, id);
        let of_stream = deltas.iter().filter(|delta| delta["stream"] == stream);
        let bytes: Vec<_> = of_stream
            .map(|delta| unbase64(&delta["deltaBase64"]))
            .collect();
        String::from_utf8_lossy(&bytes.concat()).into_owned()
    }

    /// Waits until a text was received.
    pub(crate) async fn wait_output(self, client: &Client, id: &str, text: &str) {
        client
            .until(&format!("{text:?} of {id}"), |seen| {
                let deltas = seen
                    .messages
                    .iter()
                    .filter(|message| self.is_delta(message, id));
                let bytes: Vec<_> = deltas
                    .map(|message| unbase64(&message["params"]["deltaBase64"]))
                    .collect();
                String::from_utf8_lossy(&bytes.concat())
                    .contains(text)
                    .then_some(())
            })
            .await;
    }

    fn is_delta(self, message: &Value, id: &str) -> bool {
        message["method"] == self.delta() && message["params"][self.key()] == id
    }

    /// The positions of exit messages for this id.
    fn exit_positions(self, messages: &[Arc<Value>], id: &str) -> Vec<usize> {
        let is_end = |message: &Value| {
            message["method"] == "process/exited" && message["params"]["processHandle"] == id
        };
        let all = messages.iter().enumerate();
        all.filter(|(_, message)| is_end(message))
            .map(|(at, _)| at)
            .collect()
    }
}

impl Run {
    /// Whether the exit was received.
    pub(crate) fn is_over(&self, client: &Client) -> bool {
        self.find_end(&client.received()).is_some()
    }

    /// Waits for the exit and checks that nothing about the process follows it.
    pub(crate) async fn end(&self, client: &Client) -> Outcome {
        let (at, message) = client
            .until(&format!("the end of {}", self.id), |seen| {
                let at = self.find_end(&seen.messages)?;
                Some((at, Arc::clone(&seen.messages[at])))
            })
            .await;
        let later = &client.received()[at..];
        let is_delta = |message: &Arc<Value>| self.dialect.is_delta(message, &self.id);
        assert!(!later.iter().any(is_delta), "a delta after the exit");
        let whole = match self.dialect {
            Dialect::Spawn => message["params"].clone(),
            Dialect::Command => message["result"].clone(),
        };
        Outcome {
            exit_code: whole["exitCode"]
                .as_i64()
                .unwrap_or_else(|| panic!("no exit code in {message}")),
            stdout: whole["stdout"].as_str().unwrap_or_default().to_owned(),
            stderr: whole["stderr"].as_str().unwrap_or_default().to_owned(),
            whole,
        }
    }

    fn find_end(&self, messages: &[Arc<Value>]) -> Option<usize> {
        match self.dialect {
            Dialect::Spawn => self
                .dialect
                .exit_positions(messages, &self.id)
                .get(self.before)
                .copied(),
            Dialect::Command => messages
                .iter()
                .position(|message| message["id"] == self.request),
        }
    }
}
