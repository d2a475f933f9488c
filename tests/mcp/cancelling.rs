//! Tests cancelled calls through the proxy, with several hosts and servers.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use outpost_client::{Executor, LocalExecutor, LocalOptions};
use outpost_mcp::{Executors, Limits, ServerConfig, ServerPool, model::ContentBlock};
use outpost_testkit::mcp_server::StdinRecorder;
use outpost_testkit::{FaultyLink, TestTag, deadline};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::{Host, everything, installed, waiting};
use crate::outpost;

/// A tool that reports progress all the time and ignores cancellation.
const LONG: &str = "trigger-long-running-operation";

fn call(tool: &str, arguments: &Value, token: &str) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}})
}

/// Waits for the first progress notification of a call.
async fn wait_for_progress(host: &mut Host, token: &str) {
    loop {
        let message = host.next().await.expect("more output");
        if message["method"] == "notifications/progress"
            && message["params"]["progressToken"] == token
        {
            return;
        }
    }
}

async fn cancel(host: &mut Host, id: u64) {
    let method = "notifications/cancelled";
    let params = json!({"requestId": id});
    host.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .await;
}

#[tokio::test]
async fn cancellation_reaches_a_node_server() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let direct = ["--on", server.urls()[0].as_str()];
    let cut = ["--on", link.url()];
    for args in [&[][..], &direct, &cut] {
        let recorder = StdinRecorder::new();
        let mut host = Host::start(args, &recorder.wrap(&everything()));
        host.handshake().await;
        let first = call(LONG, &json!({"duration": 0.5, "steps": 50}), "first");
        let first = host.send_request("tools/call", first).await;
        wait_for_progress(&mut host, "first").await;
        if args == cut {
            link.cut().await;
        }
        cancel(&mut host, first).await;
        assert_eq!(recorder.cancelled_call(LONG).await, json!(first));
        // This call takes longer than the rest of the first, so a response to the first would come
        // before its own.
        let second = call(LONG, &json!({"duration": 1, "steps": 4}), "second");
        let second = host.send_request("tools/call", second).await;
        let (response, before) = host.wait_response(second).await;
        let text_content = response["result"]["content"][0]["text"].as_str();
        assert!(
            text_content.is_some_and(|text_content| text_content.contains("Steps: 4.")),
            "{response}"
        );
        let of_first = |message: &&Value| message["id"] == json!(first);
        assert_eq!(before.iter().find(of_first), None);
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

#[tokio::test]
async fn cancellation_reaches_a_python_server() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let direct = ["--on", server.urls()[0].as_str()];
    let cut = ["--on", link.url()];
    for args in [&[][..], &direct, &cut] {
        let mut host = Host::start(args, &waiting());
        host.handshake().await;
        let first = call("wait", &json!({}), "first");
        let first = host.send_request("tools/call", first).await;
        wait_for_progress(&mut host, "first").await;
        if args == cut {
            link.cut().await;
        }
        cancel(&mut host, first).await;
        let second = call("cancelled_request", &json!({}), "second");
        let second = host.send_request("tools/call", second).await;
        let (response, before) = host.wait_response(second).await;
        assert_eq!(response["result"]["content"][0]["text"], first.to_string());
        let of_first = |message: &&Value| message["id"] == json!(first);
        assert_eq!(before.iter().find(of_first), None);
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

/// Runs the Python SDK as host, which cancels a call through the proxy.
async fn cancel_from_python(
    mode: &str,
    on: &[&str],
    command: &[String],
    calls: [Value; 2],
) -> Value {
    let tag = TestTag::new();
    let variable = format!("{}={}", TestTag::VARIABLE, tag.as_str());
    let [long, short] = calls.map(|call| call.to_string());
    let child = Command::new(installed("python/bin/python3"))
        .args(["-c", include_str!("cancel.py"), mode, &long, &short])
        .arg(outpost().binary())
        .args(["mcp", "proxy", "-e", &variable])
        .args(on)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("spawn");
    let output = deadline::expect_interpreter("the client", child.wait_with_output()).await;
    let output = output.expect("wait");
    let text_content = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text_content}");
    tag.gone().await;
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[tokio::test]
async fn python_sdk_cancels_through_a_local_proxy() {
    python_sdk_cancels(&[]).await;
}

#[tokio::test]
async fn python_sdk_cancels_through_a_remote_proxy() {
    let server = outpost().start().await;
    python_sdk_cancels(&["--on", server.urls()[0].as_str()]).await;
}

async fn python_sdk_cancels(args: &[&str]) {
    let recorder = StdinRecorder::new();
    let calls = [
        json!([LONG, {"duration": 1000, "steps": 100_000}]),
        json!([LONG, {"duration": 0.2, "steps": 4}]),
    ];
    let report = cancel_from_python("legacy", args, &recorder.wrap(&everything()), calls).await;
    recorder.cancelled_call(LONG).await;
    assert_eq!(report["cancelled"], true, "{report}");
    assert!(
        report["text"]
            .as_str()
            .is_some_and(|text_content| text_content.contains("Steps: 4.")),
        "{report}"
    );
    let steps = report["progress"].as_array().expect("a list");
    assert!(steps.iter().all(|step| step[1] == 4.0), "{report}");

    for mode in ["legacy", "auto"] {
        let recorder = StdinRecorder::new();
        let calls = [json!(["wait", {}]), json!(["cancelled_request", {}])];
        let report = cancel_from_python(mode, args, &recorder.wrap(&waiting()), calls).await;
        let off = recorder.cancelled_call("wait").await;
        assert_eq!(report["text"], off.to_string(), "{report}");
        assert_eq!(report["cancelled"], true, "{report}");
    }
}

/// A pool of our own client whose server is the proxy.
fn pool(on: &[&str], command: &[String], tag: &TestTag) -> ServerPool {
    let variable = format!("{}={}", TestTag::VARIABLE, tag.as_str());
    let mut args = vec!["mcp", "proxy", "-e", &variable];
    args.extend(on);
    args.push("--");
    args.extend(command.iter().map(String::as_str));
    let program = outpost().binary().display().to_string();
    let server = ServerConfig::parse("one", &json!({"command": program, "args": args}));
    let servers = BTreeMap::from([("one".to_owned(), server.expect("valid"))]);
    let local = LocalExecutor::new(LocalOptions::default()).expect("an executor");
    let local: Arc<dyn Executor> = Arc::new(local);
    let executors = Executors {
        local: Arc::new(local),
        remote: None,
    };
    ServerPool::start(servers, &executors, &Limits::default())
}

#[tokio::test]
async fn our_client_cancels_through_the_proxy() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on] {
        for (command, long, arguments, short) in [
            (
                everything(),
                LONG,
                json!({"duration": 1000, "steps": 100_000}),
                "echo",
            ),
            (waiting(), "wait", json!({}), "cancelled_request"),
        ] {
            let (recorder, tag) = (StdinRecorder::new(), TestTag::new());
            let pool = pool(args, &recorder.wrap(&command), &tag);
            let (sender, mut steps) = mpsc::channel(64);
            let arguments = arguments.as_object().expect("an object").clone();
            deadline::expect_interpreter("a step", async {
                tokio::select! {
                    response = pool.call("one", long, arguments, Some(&sender)) => {
                        panic!("unexpected response {response:?}")
                    }
                    step = steps.recv() => assert!(step.is_some()),
                }
            })
            .await;
            let off = recorder.cancelled_call(long).await;
            let hello = json!({"message": "hello"});
            let hello = hello.as_object().expect("an object").clone();
            let next = pool.call("one", short, hello, None);
            let next = deadline::expect_soon("a response", next)
                .await
                .expect("one");
            let ContentBlock::Text(text_content) = &next.content[0] else {
                panic!("{next:?}")
            };
            match short {
                "echo" => assert_eq!(text_content.text, "Echo: hello"),
                _ => assert_eq!(text_content.text, off.to_string()),
            }
            deadline::expect_soon("its exit", pool.close()).await;
            tag.gone().await;
        }
    }
}
