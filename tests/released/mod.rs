//! Replays exchanges that were recorded from the released exec-server and app-server 0.166, and
//! compares the answers.
//!
//! - `environment`: `initialize` and `environment/*`
//! - `missing`: `fs/watchMissing`
//! - `blocks`: `fs/open` with `mode`, and blocks
//! - `discovery`: configuration, plugins and skills of the host
//! - `app`: clients of the app-server
//!
//! An exchange is a text with a line per step:
//!
//! ```text
//! → METHOD PARAMS     sends a request, with `null` without params
//! ← RESULT            its result has these members, and may have others
//! ← CODE MESSAGE      its error; a message that ends with … is a prefix
//! ⇐ METHOD PARAMS     a notification has arrived
//! > TEXT              sends any text
//! = FILE TEXT         content of a file; a dot stands for a NUL
//! ```
//!
//! `{dir}` is the URI of the server's directory, and `{path}` its native path.

mod app;
mod blocks;
mod discovery;
mod environment;
mod missing;

use std::{fs, sync::Arc};

use outpost_testkit::{Client, RpcError, Server, file_uri};
use serde_json::{Value, json};

/// A connection on which exchanges are replayed.
struct Replay<'a> {
    server: &'a Server,
    client: Client,
    /// The response to the last request.
    response: Value,
    /// The number of notifications that were expected so far.
    notified: usize,
}

impl<'a> Replay<'a> {
    /// Connects without a handshake.
    async fn connect(server: &'a Server) -> Self {
        Replay {
            client: server.connect().await,
            server,
            response: Value::Null,
            notified: 0,
        }
    }

    /// Connects a client of the exec-server.
    async fn exec(server: &'a Server) -> Self {
        let replay = Replay::connect(server).await;
        replay.client.handshake().await;
        replay
    }

    /// Connects a client of the app-server.
    async fn app(server: &'a Server) -> Self {
        let replay = Replay::connect(server).await;
        let info = json!({"name": "t", "title": null, "version": "1"});
        let capabilities = json!({"experimentalApi": true});
        let params = json!({"clientInfo": info, "capabilities": capabilities});
        replay.client.call("initialize", params).await;
        replay
    }

    /// Performs the steps of an exchange.
    async fn run(&mut self, exchange: &str) {
        let dir = self.server.dir();
        let native = dir.to_str().expect("UTF-8");
        let exchange = exchange.replace("{dir}", &file_uri(dir));
        for step in exchange.replace("{path}", native).lines() {
            let step = step.trim();
            if let Some((kind, rest)) = step.split_once(' ') {
                self.step(kind, rest).await;
            }
        }
    }

    async fn step(&mut self, kind: &str, rest: &str) {
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        match kind {
            "→" => {
                let id = self.client.fresh_id();
                let mut request = json!({"id": id, "method": first});
                match second {
                    "null" => {}
                    params => request["params"] = value(params),
                }
                self.client.send(&request).await;
                self.response = self.client.response_message(id).await;
                self.response["method"] = first.into();
            }
            "←" if rest.starts_with('{') => self.check_result(&value(rest)),
            "←" => {
                let error = RpcError::parse(&self.response);
                let is_same = match second.strip_suffix('…') {
                    Some(start) => error.message.starts_with(start),
                    None => error.message == second,
                };
                let code: i64 = first.parse().expect("a code");
                assert!(
                    error.code == code && is_same,
                    "{} not {rest}",
                    self.response
                );
            }
            "⇐" => {
                let number = self.notified;
                let found = self.client.until(rest, |received| {
                    notifications(&received.messages).nth(number).cloned()
                });
                let notification = found.await;
                self.notified += 1;
                assert_eq!(notification["method"], first);
                assert_eq!(notification["params"], value(second));
            }
            ">" => self.client.send_text(rest).await,
            "=" => {
                let content = fs::read(self.server.dir().join(first)).expect("a file");
                let content = String::from_utf8_lossy(&content).replace('\0', ".");
                assert_eq!(content, second);
            }
            _ => panic!("unknown step {kind}"),
        }
    }

    /// Compares a result, which may have more members than the recorded one.
    fn check_result(&self, recorded: &Value) {
        let response = &self.response;
        let members = recorded.as_object().expect("an object");
        for (name, value) in members {
            assert_eq!(response["result"].get(name), Some(value), "{response}");
        }
        assert!(response["result"].is_object(), "{response}");
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The notifications among some messages.
fn notifications(messages: &[Arc<Value>]) -> impl Iterator<Item = &Value> {
    let messages = messages.iter().map(|message| &**message);
    messages.filter(|message| message.get("method").is_some())
}
