//! `process/spawn` and `command/exec`, as far as the same is expected of both.

use std::sync::Arc;

use outpost_testkit::{Client, RpcError, Server, base64, unbase64};
use serde_json::{Value, json};

use crate::over_each_transport;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Spawn,
    Command,
}

/// What became of a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit_code: i64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The params of the notification, or the result.
    pub(crate) whole: Value,
}

/// A process under way.
pub(crate) struct Run {
    face: Face,
    id: String,
    /// The request that started it.
    request: i64,
    /// How many of the same name have ended before.
    before: usize,
}

/// The handshake as a client of the app-server says it.
pub(crate) async fn introduce(client: &Client) {
    let params = json!({
        "clientInfo": {"name": "testkit", "title": null, "version": "1"},
        "capabilities": {"experimentalApi": true},
    });
    client.call("initialize", params).await;
}

/// Does the same with each face over each transport, each time with a server of its own.
#[expect(clippy::print_stderr, reason = "a failed test says which face it was")]
pub(crate) async fn everywhere(test: impl AsyncFn(Face, &Server, &Client)) {
    for face in [Face::Spawn, Face::Command] {
        over_each_transport(async |server, client| {
            eprintln!("{face:?}:");
            introduce(client).await;
            test(face, server, client).await;
        })
        .await;
    }
}

impl Face {
    /// The method that starts.
    pub(crate) fn start(self) -> &'static str {
        match self {
            Face::Spawn => "process/spawn",
            Face::Command => "command/exec",
        }
    }

    pub(crate) fn key(self) -> &'static str {
        match self {
            Face::Spawn => "processHandle",
            Face::Command => "processId",
        }
    }

    fn delta(self) -> &'static str {
        match self {
            Face::Spawn => "process/outputDelta",
            Face::Command => "command/exec/outputDelta",
        }
    }

    pub(crate) fn write(self) -> &'static str {
        match self {
            Face::Spawn => "process/writeStdin",
            Face::Command => "command/exec/write",
        }
    }

    pub(crate) fn resize(self) -> &'static str {
        match self {
            Face::Spawn => "process/resizePty",
            Face::Command => "command/exec/resize",
        }
    }

    pub(crate) fn kill(self) -> &'static str {
        match self {
            Face::Spawn => "process/kill",
            Face::Command => "command/exec/terminate",
        }
    }

    /// How an unknown process is refused.
    pub(crate) fn unknown(self, id: &str) -> String {
        match self {
            Face::Spawn => format!("no active process for process handle \"{id}\""),
            Face::Command => format!("no active command/exec for process id \"{id}\""),
        }
    }

    /// Params that name a process.
    pub(crate) fn about(self, id: &str, mut more: Value) -> Value {
        more[self.key()] = json!(id);
        more
    }

    /// The params of a script.
    pub(crate) fn sh(self, id: &str, script: &str, more: Value) -> Value {
        let mut params = self.about(id, more);
        params["command"] = json!(["/bin/sh", "-c", script]);
        if params.get("cwd").is_none() {
            params["cwd"] = json!("/tmp");
        }
        params
    }

    /// Starts a script; a spawn is answered then.
    pub(crate) async fn begin(self, client: &Client, id: &str, script: &str, more: Value) -> Run {
        let before = self.ends(&client.received(), id).len();
        let request = client
            .request(self.start(), self.sh(id, script, more))
            .await;
        if self == Face::Spawn {
            assert_eq!(client.answer(request).await, Ok(json!({})));
        }
        Run {
            face: self,
            id: id.to_owned(),
            request,
            before,
        }
    }

    /// Runs a script to its end.
    pub(crate) async fn run(self, client: &Client, id: &str, script: &str, more: Value) -> Outcome {
        self.begin(client, id, script, more).await.end(client).await
    }

    /// Starts something that must be refused.
    pub(crate) async fn fails(self, client: &Client, params: Value) -> RpcError {
        client.fails(self.start(), params).await
    }

    pub(crate) async fn types(self, client: &Client, id: &str, text: &str) {
        let params = self.about(id, json!({"deltaBase64": base64(text)}));
        assert_eq!(client.call(self.write(), params).await, json!({}));
    }

    /// The deltas of a process so far, in the order of the wire.
    pub(crate) fn deltas(self, client: &Client, id: &str) -> Vec<Value> {
        let received = client.received();
        let deltas = received.iter().filter(|message| self.is_delta(message, id));
        deltas.map(|message| message["params"].clone()).collect()
    }

    /// What was told of a stream so far.
    pub(crate) fn told(self, client: &Client, id: &str, stream: &str) -> String {
        let deltas = self.deltas(client, id);
        let of_stream = deltas.iter().filter(|delta| delta["stream"] == stream);
        let bytes: Vec<_> = of_stream
            .map(|delta| unbase64(&delta["deltaBase64"]))
            .collect();
        String::from_utf8_lossy(&bytes.concat()).into_owned()
    }

    /// Waits until a text was told.
    pub(crate) async fn sees(self, client: &Client, id: &str, text: &str) {
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

    /// Where in the stream of messages processes of a name have ended.
    fn ends(self, messages: &[Arc<Value>], id: &str) -> Vec<usize> {
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
    /// Whether its end has been told.
    pub(crate) fn is_over(&self, client: &Client) -> bool {
        self.find_end(&client.received()).is_some()
    }

    /// Waits for its end, behind which nothing of it may come.
    pub(crate) async fn end(&self, client: &Client) -> Outcome {
        let (at, message) = client
            .until(&format!("the end of {}", self.id), |seen| {
                let at = self.find_end(&seen.messages)?;
                Some((at, Arc::clone(&seen.messages[at])))
            })
            .await;
        let later = &client.received()[at..];
        let is_delta = |message: &Arc<Value>| self.face.is_delta(message, &self.id);
        assert!(!later.iter().any(is_delta), "a delta behind the end");
        let whole = match self.face {
            Face::Spawn => message["params"].clone(),
            Face::Command => message["result"].clone(),
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
        match self.face {
            Face::Spawn => self.face.ends(messages, &self.id).get(self.before).copied(),
            Face::Command => messages
                .iter()
                .position(|message| message["id"] == self.request),
        }
    }
}
