//! Tests `outpost mcp serve`, with the client of another SDK and line by line.

mod ends;
mod executors;
mod hosts;

use std::path::Path;
use std::process::Stdio;

use outpost_testkit::{TestTag, deadline};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::outpost;

/// A host on the Python SDK.
const CLIENT: &str = include_str!("client.py");

/// Runs hosts that use the program, and checks that no process is left.
struct Host {
    tag: TestTag,
    dir: tempfile::TempDir,
    env: Vec<(&'static str, &'static str)>,
}

/// The report of a host.
struct HostReport(Value);

impl Host {
    fn new() -> Self {
        Host {
            tag: TestTag::new(),
            dir: tempfile::tempdir().expect("a directory"),
            env: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the program with `args` and calls these tools one after the other.
    async fn calls(&self, mode: &str, args: &[&str], calls: &[(&str, Value)]) -> HostReport {
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
            .current_dir(self.dir.path())
            .env(TestTag::VARIABLE, self.tag.as_str())
            .env("XDG_STATE_HOME", self.tag.state_home())
            .envs(self.env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().expect("spawn");
        let output = deadline::expect_soon("the client", child.wait_with_output()).await;
        let output = output.expect("wait");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        self.tag.gone().await;
        HostReport(serde_json::from_slice(&output.stdout).expect("JSON"))
    }
}

impl HostReport {
    /// The structured result of a call, which must have succeeded.
    fn structured(&self, call: usize) -> &Value {
        let response = &self.0["results"][call];
        assert_eq!(response["failed"], false, "{response}");
        &response["structured"]
    }

    /// The error text of a call, which must have failed.
    fn error_text(&self, call: usize) -> &str {
        let response = &self.0["results"][call];
        assert_eq!(response["failed"], true, "{response}");
        response["text"].as_str().expect("text")
    }
}

/// The Python interpreter that has the SDK.
fn python() -> std::path::PathBuf {
    let dir = std::env::current_dir().expect("a directory");
    let path = dir.join("../../target/mcp-servers/python/bin/python3");
    let exists = Path::new(&path).exists();
    assert!(
        exists,
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path
}
