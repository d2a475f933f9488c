//! A conversation that a released coding agent had with its own server, said again to ours.

use std::collections::BTreeMap;
use std::path::Path;

use outpost_testkit::{Client, RpcError, file_uri};
use serde_json::{Value, json};

use crate::outpost;

/// One message a line, with who sent it.
const RECORDED: &str = include_str!("../crates/protocol/tests/data/coding-agent.jsonl");

/// Where the agent worked when it was recorded.
const PROJECT: &str = "/srv/project";

/// Where nobody works.
const NOWHERE: &str = "/no/such/project";

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

    fn answer(&self, id: &Value) -> &Value {
        let answer = self.server.iter().find(|message| message["id"] == *id);
        answer.unwrap_or_else(|| panic!("no answer to {id} was recorded"))
    }

    /// What a process wrote, without what the recorded machine had to say itself, and its code.
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

/// Sends a message of the recording and waits for its answer, if it has one.
async fn say(client: &Client, message: &Value) -> Option<Value> {
    client.send(message).await;
    match message.get("id") {
        Some(id) => Some(client.answer_message(id.clone()).await),
        None => None,
    }
}

#[tokio::test]
async fn every_message_of_the_agent_is_answered_once_and_in_shape() {
    let recording = Recording::read();
    let server = outpost().start().await;
    let client = server.connect().await;
    for message in &recording.client {
        // What the agent may write isn't on this machine, so nothing of it is run.
        let elsewhere = message.to_string().replace(PROJECT, NOWHERE);
        let message: &Value = &serde_json::from_str(&elsewhere).expect("the same elsewhere");
        let Some(answer) = say(&client, message).await else {
            continue;
        };
        match message["method"].as_str().expect("a method") {
            "initialize" => {
                let recorded = recording.answer(&message["id"]);
                for member in recorded["result"].as_object().expect("an object").keys() {
                    assert!(answer["result"].get(member).is_some(), "{member}");
                }
                let told = &answer["result"]["environmentInfo"];
                for member in ["shell", "executorVersion", "cwd", "platformOs", "tempDir"] {
                    let recorded = &recorded["result"]["environmentInfo"][member];
                    let same_kind = told[member].is_object() == recorded.is_object()
                        && told[member].is_string() == recorded.is_string();
                    assert!(same_kind, "{member} in {told}");
                }
            }
            "process/start" => {
                let error = RpcError::of(&answer);
                assert_eq!(error.code, -32603, "{answer}");
                let words = format!("cannot enter directory \"{NOWHERE}\"");
                assert!(error.message.starts_with(&words), "{answer}");
            }
            "fs/getMetadata" => {
                let recorded = recording.answer(&message["id"]);
                assert_eq!(answer["error"], recorded["error"], "{message}");
            }
            "process/terminate" => assert_eq!(answer["result"], json!({"running": false})),
            _ => assert_eq!(RpcError::of(&answer).code, -32601, "{answer}"),
        }
    }
    let requests = recording
        .client
        .iter()
        .filter(|message| message.get("id").is_some());
    assert_eq!(
        client.received().len(),
        requests.count(),
        "and nothing else was said"
    );
}

/// A recorded start as it can be run here: not confined, in another folder, and without any
/// harm to this machine if it isn't.
fn unconfined(message: &Value, project: &Path) -> Value {
    let mut message = message.clone();
    let params = &mut message["params"];
    params["sandbox"] = json!(null);
    params["cwd"] = json!(file_uri(project));
    let script = params["argv"][2].as_str().expect("a script");
    params["argv"][2] = json!(script.replace("/etc/", "/proc/"));
    message
}

#[tokio::test]
async fn what_the_agent_ran_gives_what_was_recorded() {
    let recording = Recording::read();
    let project = tempfile::tempdir().expect("a folder");
    let project = project.path().canonicalize().expect("a folder");
    let home = project.to_str().expect("UTF-8").to_owned();
    // Login shells read what is at home; here that is nothing.
    let server = outpost().env("HOME", &home).start().await;
    let client = server.connect().await;
    let mut ran = 0;
    for message in &recording.client {
        let method = message["method"].as_str().expect("a method");
        match method {
            "initialize" | "initialized" => {
                say(&client, message).await;
            }
            "process/start" => {
                let id = &message["params"]["processId"];
                let answer = say(&client, &unconfined(message, &project))
                    .await
                    .expect("an answer");
                assert_eq!(
                    answer["result"],
                    json!({"processId": id, "sandboxType": "none"})
                );
                let story = client.closed(id.as_str().expect("an id")).await;
                let (stdout, stderr, code) = recording.outcome(id);
                let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname");
                let hostname = hostname.expect("a name").trim().to_owned();
                let stdout = stdout
                    .replace(PROJECT, &home)
                    .replace("hello-from-vm", &format!("hello-from-{hostname}"));
                assert_eq!(story.stdout(), stdout);
                assert_eq!(story.code(), code);
                // The reasons of a system are its own; that there is one was recorded.
                let lines = |text: &str| text.lines().count();
                assert_eq!(lines(&story.stderr()), lines(&stderr), "{}", story.stderr());
                ran += 1;
            }
            "process/terminate" => {
                let answer = say(&client, message).await.expect("an answer");
                assert_eq!(
                    &answer["result"],
                    &recording.answer(&message["id"])["result"]
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
