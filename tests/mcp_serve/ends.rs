//! By hand, and how it ends.

use std::process::Stdio;

use outpost_testkit::{Mark, patience};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::outpost;

/// The program, spoken to line by line.
struct Spoken {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    mark: Mark,
}

impl Spoken {
    fn start() -> Self {
        let mark = Mark::new();
        let mut child = Command::new(outpost().binary())
            .args(["mcp", "serve"])
            .env(Mark::VARIABLE, mark.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("it was asked for");
        Spoken {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout).lines(),
            child,
            mark,
        }
    }

    /// One that a client of the oldest revision has greeted.
    async fn greeted() -> Self {
        let mut spoken = Spoken::start();
        let hello = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "by hand", "version": "1"},
        });
        spoken.ask(1, "initialize", hello).await;
        let answer = spoken.heard().await;
        assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(answer["result"]["serverInfo"]["name"], "outpost");
        let greeted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        spoken.say(&greeted.to_string()).await;
        spoken
    }

    async fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it isn't ended");
        let line = format!("{line}\n");
        stdin.write_all(line.as_bytes()).await.expect("it listens");
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&request.to_string()).await;
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        self.ask(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
        .await;
    }

    async fn heard(&mut self) -> Value {
        let line = patience::soon("an answer", self.stdout.next_line()).await;
        let line = line.expect("it can be read").expect("it speaks");
        serde_json::from_str(&line).expect("a message")
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        kill_process(pid, signal).expect("it is there");
    }

    /// Its exit code, when nothing of what it started is left.
    async fn ended(mut self) -> Option<i32> {
        let status = patience::soon("its end", self.child.wait()).await;
        self.mark.gone().await;
        status.expect("it can be waited for").code()
    }
}

#[tokio::test]
async fn what_is_asked_at_the_last_moment_is_answered() {
    let mut spoken = Spoken::greeted().await;
    spoken
        .call(2, "run_command", json!({"command": "echo hi"}))
        .await;
    spoken.stdin = None;
    let answer = spoken.heard().await;
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "hi\n");
    assert_eq!(spoken.ended().await, Some(0));
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_long_command() {
    let mut spoken = Spoken::greeted().await;
    spoken
        .call(2, "run_command", json!({"argv": ["sleep", "1000"]}))
        .await;
    spoken
        .call(
            3,
            "start_process",
            json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
        )
        .await;
    spoken.heard().await;
    spoken.stdin = None;
    assert_eq!(spoken.ended().await, Some(0));
}

#[tokio::test]
async fn a_signal_ends_it_and_what_it_runs() {
    let mut spoken = Spoken::greeted().await;
    spoken
        .call(2, "run_command", json!({"argv": ["sleep", "1000"]}))
        .await;
    spoken
        .call(
            3,
            "start_process",
            json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
        )
        .await;
    spoken.heard().await;
    spoken.signal(Signal::TERM);
    assert_eq!(spoken.ended().await, Some(143));
}

#[tokio::test]
async fn nothing_outlives_it_even_if_it_is_killed() {
    let mut spoken = Spoken::greeted().await;
    let script = "setsid sleep 1000 & wait";
    spoken
        .call(2, "start_process", json!({"command": script, "wait_ms": 0}))
        .await;
    spoken.heard().await;
    spoken.signal(Signal::KILL);
    assert_eq!(spoken.ended().await, None);
}

#[tokio::test]
async fn who_says_nothing_may_go() {
    let mut spoken = Spoken::start();
    spoken.stdin = None;
    assert_eq!(spoken.ended().await, Some(0));
}

#[tokio::test]
async fn nonsense_is_no_reason_to_end() {
    let mut spoken = Spoken::greeted().await;
    for nonsense in [
        "nonsense",
        "{}",
        "[1]",
        "",
        "{\"jsonrpc\": \"2.0\", \"id\": 9}",
    ] {
        spoken.say(nonsense).await;
    }
    spoken.call(2, "list_processes", json!({})).await;
    loop {
        let answer = spoken.heard().await;
        if answer["id"] == 2 {
            assert_eq!(answer["result"]["isError"], false);
            break;
        }
        // What came in a list is answered with one.
        let refusal = answer.get(0).unwrap_or(&answer);
        assert!(refusal["error"].is_object(), "{answer}");
    }
    spoken.stdin = None;
    assert_eq!(spoken.ended().await, Some(0));
}

#[tokio::test]
async fn a_host_that_reads_nothing_does_not_hold_up_the_end() {
    let mut spoken = Spoken::greeted().await;
    let much = json!({"command": "seq 1 100000", "max_output_bytes": 200_000});
    for id in 2..6 {
        spoken.call(id, "run_command", much.clone()).await;
    }
    // A first byte is there, so more of it is stuck than a pipe holds.
    let filled = spoken.stdout.get_mut().fill_buf();
    patience::soon("an answer", filled)
        .await
        .expect("it can be read");
    spoken.stdin = None;
    assert_eq!(spoken.ended().await, Some(0));
}
