//! `outpost mcp serve`: used by the client of another SDK, and by hand.

mod ends;
mod hosts;
mod places;

use std::path::Path;
use std::process::Stdio;

use outpost_testkit::{Mark, patience};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::outpost;

/// What drives the SDK for Python.
const CLIENT: &str = include_str!("client.py");

/// A host that uses the program, and nothing of what it started is left.
struct Host {
    mark: Mark,
    folder: tempfile::TempDir,
    env: Vec<(&'static str, &'static str)>,
}

/// What a host has heard.
struct Heard(Value);

impl Host {
    fn new() -> Self {
        Host {
            mark: Mark::new(),
            folder: tempfile::tempdir().expect("a folder"),
            env: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Calls these tools, one after the other, of the program with these arguments.
    async fn calls(&self, mode: &str, args: &[&str], calls: &[(&str, Value)]) -> Heard {
        let calls: Vec<_> = calls
            .iter()
            .map(|(tool, with)| json!([tool, with]))
            .collect();
        let binary = outpost();
        let mut command = Command::new(python());
        command
            .args(["-c", CLIENT, mode, &Value::from(calls).to_string()])
            .arg(binary.binary())
            .args(["mcp", "serve"])
            .args(args)
            .current_dir(self.folder.path())
            .env(Mark::VARIABLE, self.mark.as_str())
            .envs(self.env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().expect("it starts");
        let output = patience::soon("the client", child.wait_with_output()).await;
        let output = output.expect("it can be waited for");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
        self.mark.gone().await;
        Heard(serde_json::from_slice(&output.stdout).expect("what it heard"))
    }
}

impl Heard {
    /// What the Nth call has answered, which has to be an answer.
    fn members(&self, call: usize) -> &Value {
        let answer = &self.0["answers"][call];
        assert_eq!(answer["failed"], false, "{answer}");
        &answer["members"]
    }

    /// What the Nth call has refused.
    fn refusal(&self, call: usize) -> &str {
        let answer = &self.0["answers"][call];
        assert_eq!(answer["failed"], true, "{answer}");
        answer["words"].as_str().expect("words")
    }
}

/// The interpreter with the SDK.
fn python() -> std::path::PathBuf {
    let folder = std::env::current_dir().expect("a folder");
    let path = folder.join("../../target/mcp-servers/python/bin/python3");
    let there = Path::new(&path).exists();
    assert!(
        there,
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path
}
