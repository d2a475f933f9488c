//! Replays the messages that a released coding agent exchanged with its own server.

use std::collections::BTreeMap;
use std::path::Path;

use outpost_testkit::{Client, RpcError, file_uri};
use serde_json::{Value, json};

use crate::outpost;

/// One message per line, with its sender.
const RECORDED: &str = include_str!("../crates/protocol/tests/data/coding-agent.jsonl");

/// The agent's working directory when it was recorded.
const PROJECT: &str = "/srv/project";

/// A directory that doesn't exist.
const MISSING_DIR: &str = "/no/such/project";

struct Recording {
    client: Vec<Value>,
    server: Vec<Value>,
}

impl Recording {
    fn read() -> Self {
        let mut recording = Recording {
            client: Vec::new(),
            server: Vec::new(),
        };
        for line in RECORDED.lines() {
            let line: Value = serde_json::from_str(line).expect("a recorded message");
            let side = match line["from"].as_str() {
                Some("client") => &mut recording.client,
                _ => &mut recording.server,
            };
            side.push(line["message"].clone());
        }
        recording
    }

    fn requests(&self, method: &str) -> impl Iterator<Item = &Value> {
        self.client
            .iter()
            .filter(move |message| message["method"] == method)
    }

    fn response(&self, id: &Value) -> &Value {
        let response = self.server.iter().find(|message| message["id"] == *id);
        response.unwrap_or_else(|| panic!("no response to {id} was recorded"))
    }

    /// The recorded output of a process, without messages of the recorded machine, and its exit
    /// code.
    fn outcome(&self, process: &Value) -> (String, String, i64) {
        let mut streams: BTreeMap<&str, String> = BTreeMap::new();
        let mut code = None;
        for message in &self.server {
            let params = &message["params"];
            if params["processId"] != *process {
                continue;
            }
            if let Some(stream) = params["stream"].as_str() {
                let bytes = outpost_testkit::unbase64(&params["chunk"]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if !text.starts_with("pyenv:") {
                    streams.entry(stream).or_default().push_str(&text);
                }
            }
            code = code.or(params["exitCode"].as_i64());
        }
        let mut stream = |name| streams.remove(name).unwrap_or_default();
        (
            stream("stdout"),
            stream("stderr"),
            code.expect("a recorded exit"),
        )
    }
}

/// Sends a message of the recording and waits for its response, if it has one.
async fn replay(client: &Client, message: &Value) -> Option<Value> {
    client.send(message).await;
    match message.get("id") {
        Some(id) => Some(client.response_message(id.clone()).await),
        None => None,
    }
}

#[tokio::test]
async fn every_recorded_request_has_one_valid_response() {
    let recording = Recording::read();
    let server = outpost().start().await;
    let client = server.connect().await;
    for message in &recording.client {
        // The agent's workspace doesn't exist on this machine, so nothing is run.
        let relocated = message.to_string().replace(PROJECT, MISSING_DIR);
        let message: &Value = &serde_json::from_str(&relocated).expect("valid JSON");
        let Some(response) = replay(&client, message).await else {
            continue;
        };
        match message["method"].as_str().expect("a method") {
            "initialize" => {
                let recorded = recording.response(&message["id"]);
                for member in recorded["result"].as_object().expect("an object").keys() {
                    assert!(response["result"].get(member).is_some(), "{member}");
                }
                let info = &response["result"]["environmentInfo"];
                for member in ["shell", "executorVersion", "cwd", "platformOs", "tempDir"] {
                    let recorded = &recorded["result"]["environmentInfo"][member];
                    let same_kind = info[member].is_object() == recorded.is_object()
                        && info[member].is_string() == recorded.is_string();
                    assert!(same_kind, "{member} in {info}");
                }
            }
            "process/start" => {
                let error = RpcError::parse(&response);
                assert_eq!(error.code, -32603, "{response}");
                let text_content = format!("cannot enter directory \"{MISSING_DIR}\"");
                assert!(error.message.starts_with(&text_content), "{response}");
            }
            "fs/getMetadata" => {
                let recorded = recording.response(&message["id"]);
                assert_eq!(
                    RpcError::parse(&response),
                    RpcError::parse(recorded),
                    "{message}"
                );
                assert_eq!(
                    response["error"]["data"],
                    json!({"kind": "notFound", "errno": 2})
                );
            }
            "process/terminate" => assert_eq!(response["result"], json!({"running": false})),
            "environmentConfig/read" => {
                let recorded = recording.response(&message["id"]);
                for member in recorded["result"].as_object().expect("an object").keys() {
                    assert!(response["result"].get(member).is_some(), "{member}");
                }
            }
            // The answer depends on the files of this machine.
            "fs/watchMissing" => assert!(response["result"]["watching"].is_boolean()),
            _ => assert_eq!(RpcError::parse(&response).code, -32601, "{response}"),
        }
    }
    let requests = recording
        .client
        .iter()
        .filter(|message| message.get("id").is_some());
    assert_eq!(
        client.received().len(),
        requests.count(),
        "and no other response"
    );
}

/// Adapts a recorded start to this machine: unsandboxed and in another directory, and so that it
/// does no harm if that fails.
fn unsandboxed(message: &Value, project: &Path) -> Value {
    let mut message = message.clone();
    let params = &mut message["params"];
    params["sandbox"] = json!(null);
    params["cwd"] = json!(file_uri(project));
    let script = params["argv"][2].as_str().expect("a script");
    params["argv"][2] = json!(script.replace("/etc/", "/proc/"));
    message
}

#[tokio::test]
async fn recorded_commands_give_the_recorded_output() {
    let recording = Recording::read();
    let project = tempfile::tempdir().expect("a directory");
    let project = project.path().canonicalize().expect("a directory");
    let home = project.to_str().expect("UTF-8").to_owned();
    // Login shells read files in HOME, which is empty here.
    let server = outpost().env("HOME", &home).start().await;
    let client = server.connect().await;
    let mut ran = 0;
    for message in &recording.client {
        let method = message["method"].as_str().expect("a method");
        match method {
            "initialize" | "initialized" => {
                replay(&client, message).await;
            }
            "process/start" => {
                let id = &message["params"]["processId"];
                let response = replay(&client, &unsandboxed(message, &project))
                    .await
                    .expect("a response");
                assert_eq!(
                    response["result"],
                    json!({"processId": id, "sandboxType": "none"})
                );
                let log = client.closed(id.as_str().expect("an id")).await;
                let (stdout, stderr, code) = recording.outcome(id);
                let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname");
                let hostname = hostname.expect("a name").trim().to_owned();
                let stdout = stdout
                    .replace(PROJECT, &home)
                    .replace("hello-from-vm", &format!("hello-from-{hostname}"));
                assert_eq!(log.stdout(), stdout);
                assert_eq!(log.code(), code);
                // Error texts differ between systems, so only the number of lines is compared.
                let lines = |text: &str| text.lines().count();
                assert_eq!(lines(&log.stderr()), lines(&stderr), "{}", log.stderr());
                ran += 1;
            }
            "process/terminate" => {
                let response = replay(&client, message).await.expect("a response");
                assert_eq!(
                    &response["result"],
                    &recording.response(&message["id"])["result"]
                );
            }
            _ => {}
        }
    }
    assert_eq!(ran, recording.requests("process/start").count());
    assert_eq!(ran, 4);
    assert_eq!(
        std::fs::read_to_string(project.join("inside.txt")).expect("a file"),
        "x\n"
    );
}
