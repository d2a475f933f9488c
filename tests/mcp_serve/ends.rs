//! Tests `outpost mcp serve` line by line, and how it ends.

use std::process::Stdio;

use outpost_testkit::{TestTag, deadline};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::outpost;

/// The program, with JSON lines on its stdio.
struct LineClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    tag: TestTag,
}

impl LineClient {
    fn start() -> Self {
        let tag = TestTag::new();
        let mut child = Command::new(outpost().binary())
            .args(["mcp", "serve"])
            .env(TestTag::VARIABLE, tag.as_str())
            .env("XDG_STATE_HOME", tag.state_home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("spawn");
        let stdout = child.stdout.take().expect("piped");
        LineClient {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout).lines(),
            child,
            tag,
        }
    }

    /// Starts the program and performs the handshake of the oldest revision.
    async fn initialized() -> Self {
        let mut program = LineClient::start();
        let hello = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "by hand", "version": "1"},
        });
        program.send_request(1, "initialize", hello).await;
        let response = program.receive().await;
        assert_eq!(response["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(response["result"]["serverInfo"]["name"], "outpost");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        program.send_line(&initialized.to_string()).await;
        program
    }

    async fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let line = format!("{line}\n");
        stdin
            .write_all(line.as_bytes())
            .await
            .expect("stdin is open");
    }

    async fn send_request(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string()).await;
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        self.send_request(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
        .await;
    }

    async fn receive(&mut self) -> Value {
        let line = deadline::expect_soon("a response", self.stdout.next_line()).await;
        let line = line.expect("readable").expect("a line");
        serde_json::from_str(&line).expect("a message")
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        kill_process(pid, signal).expect("it exists");
    }

    /// Returns its exit code once all its processes have ended.
    async fn finish(mut self) -> Option<i32> {
        let status = deadline::expect_soon("its exit", self.child.wait()).await;
        self.tag.gone().await;
        status.expect("wait").code()
    }
}

#[tokio::test]
async fn last_request_before_the_end_is_answered() {
    let mut program = LineClient::initialized().await;
    program
        .call(2, "run_command", json!({"command": "echo hi"}))
        .await;
    program.stdin = None;
    let response = program.receive().await;
    assert_eq!(response["result"]["structuredContent"]["stdout"], "hi\n");
    assert_eq!(program.finish().await, Some(0));
}

#[tokio::test]
async fn end_of_input_ends_a_long_command() {
    let mut program = LineClient::initialized().await;
    program
        .call(2, "run_command", json!({"argv": ["sleep", "1000"]}))
        .await;
    program
        .call(
            3,
            "start_process",
            json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
        )
        .await;
    program.receive().await;
    program.stdin = None;
    assert_eq!(program.finish().await, Some(0));
}

#[tokio::test]
async fn signal_ends_the_server_and_its_processes() {
    let mut program = LineClient::initialized().await;
    program
        .call(2, "run_command", json!({"argv": ["sleep", "1000"]}))
        .await;
    program
        .call(
            3,
            "start_process",
            json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
        )
        .await;
    program.receive().await;
    program.signal(Signal::TERM);
    assert_eq!(program.finish().await, Some(143));
}

#[tokio::test]
async fn sigkill_leaves_no_process() {
    let mut program = LineClient::initialized().await;
    let script = "setsid sleep 1000 & wait";
    program
        .call(2, "start_process", json!({"command": script, "wait_ms": 0}))
        .await;
    program.receive().await;
    program.signal(Signal::KILL);
    assert_eq!(program.finish().await, None);
}

#[tokio::test]
async fn client_may_disconnect_without_a_message() {
    let mut program = LineClient::start();
    program.stdin = None;
    assert_eq!(program.finish().await, Some(0));
}

#[tokio::test]
async fn malformed_messages_do_not_end_the_server() {
    let mut program = LineClient::initialized().await;
    for nonsense in [
        "nonsense",
        "{}",
        "[1]",
        "",
        "{\"jsonrpc\": \"2.0\", \"id\": 9}",
    ] {
        program.send_line(nonsense).await;
    }
    program.call(2, "list_processes", json!({})).await;
    loop {
        let response = program.receive().await;
        if response["id"] == 2 {
            assert_eq!(response["result"]["isError"], false);
            break;
        }
        // A batch gets a batch as response.
        let error = response.get(0).unwrap_or(&response);
        assert!(error["error"].is_object(), "{response}");
    }
    program.stdin = None;
    assert_eq!(program.finish().await, Some(0));
}

#[tokio::test]
async fn unread_output_does_not_delay_the_exit() {
    let mut program = LineClient::initialized().await;
    let much = json!({"command": "seq 1 100000", "max_output_bytes": 200_000});
    for id in 2..6 {
        program.call(id, "run_command", much.clone()).await;
    }
    // A first byte has arrived; the rest is more than the pipe holds.
    let filled = program.stdout.get_mut().fill_buf();
    deadline::expect_soon("a response", filled)
        .await
        .expect("readable");
    program.stdin = None;
    assert_eq!(program.finish().await, Some(0));
}
