//! The end of a session, and the loss of the executor.

use std::time::Duration;

use outpost_mcp::serve::ToolLimits;
use serde_json::json;

use super::harness::{TestOptions, TestSession, in_each_environment_with, soon, wait_gone};

fn short_drain() -> TestOptions {
    TestOptions {
        limits: ToolLimits {
            call_drain: Duration::from_millis(100),
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    }
}

#[tokio::test]
async fn processes_end_with_the_session() {
    for session in [
        TestSession::local(short_drain()).await,
        TestSession::remote(short_drain()).await,
    ] {
        let script = "echo $$; exec sleep 1000";
        let start = json!({"command": script, "wait_ms": 20_000});
        let started = session.call("start_process", start).await;
        let pid = started["output"].as_str().unwrap().to_owned();
        session.end().await;
        wait_gone(&pid).await;
    }
}

#[tokio::test]
async fn pending_call_does_not_delay_the_end() {
    for session in [
        TestSession::local(short_drain()).await,
        TestSession::remote(short_drain()).await,
    ] {
        let run = json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"});
        let _call = session.begin("run_command", run).await;
        let path = session.path("pid");
        let pid = outpost_testkit::deadline::poll_until("the pid", || {
            std::fs::read_to_string(&path).ok()
        });
        let pid = pid.await;
        session.end().await;
        wait_gone(&pid).await;
    }
}

#[tokio::test]
async fn cancelled_session_ends() {
    let session = TestSession::local(short_drain()).await;
    let run = json!({"command": "echo > here; exec sleep 1000"});
    let _call = session.begin("run_command", run).await;
    let path = session.path("here");
    outpost_testkit::deadline::poll_until("the command", || path.exists().then_some(())).await;
    session.cancel.cancel();
    let TestSession {
        task,
        executor,
        tool_server,
        ..
    } = session;
    soon("the end", task).await.expect("no panic");
    executor.close().await.expect("close the executor");
    tool_server.close().await;
}

#[tokio::test]
async fn lost_executor_is_reported_at_once() {
    let session = TestSession::remote(short_drain()).await;
    let start = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
    let started = session.call("start_process", start.clone()).await;
    let run = session
        .begin("run_command", json!({"command": "sleep 1000"}))
        .await;
    // Wait for the responses to both starts, which could be lost otherwise.
    soon("both processes", async {
        loop {
            let known = session.call("list_processes", json!({})).await;
            if known["processes"].as_array().unwrap().len() == 2 {
                return;
            }
        }
    })
    .await;
    session
        .remote
        .as_ref()
        .expect("a remote executor")
        .disappear();
    let rmcp::model::ServerResult::CallToolResult(ran) = soon("a response", run.await_response())
        .await
        .expect("a response")
    else {
        panic!("not a tool result")
    };
    let lost = &ran.structured_content.expect("structured content")["lost"];
    assert!(lost.as_str().unwrap().contains("disconnected"), "{lost}");
    let read = json!({"process_id": started["process_id"], "wait_for": "exit", "wait_ms": 20_000});
    let page = session.call("read_output", read).await;
    assert!(
        page["lost"].as_str().unwrap().contains("disconnected"),
        "{page}"
    );
    let message = session.call_failing("start_process", start).await;
    assert!(message.contains("disconnected"), "{message}");
    session.end().await;
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let options = TestOptions {
        limits: ToolLimits {
            concurrent_calls: 1,
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        let call = session.begin(
            "run_command",
            json!({"command": "echo > here; read x < end || sleep 1000"}),
        );
        let made = std::process::Command::new("mkfifo")
            .arg(session.path("end"))
            .status();
        assert!(made.unwrap().success());
        let call = call.await;
        let path = session.path("here");
        outpost_testkit::deadline::poll_until("the command", || path.exists().then_some(())).await;
        let message = session.call_failing("list_processes", json!({})).await;
        assert!(message.contains("1 calls are in progress"), "{message}");
        std::fs::write(session.path("end"), "x\n").unwrap();
        soon("the response", call.await_response()).await.unwrap();
        session.call("list_processes", json!({})).await;
    })
    .await;
}
