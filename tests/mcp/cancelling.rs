//! Calls that are called off through the proxy, whoever the host is and whoever the server.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use outpost_client::{Local, LocalOptions};
use outpost_mcp::{Ensemble, Launchers, Limits, LocalLauncher, ServerConfig, model::ContentBlock};
use outpost_testkit::mcp::Wiretap;
use outpost_testkit::{Link, Mark, patience};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::{Host, everything, installed, waiting};
use crate::outpost;

/// It tells of its steps all the while, and doesn't care whether it was called off.
const LONG: &str = "trigger-long-running-operation";

fn call(tool: &str, arguments: &Value, token: &str) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}})
}

/// Waits for the first word about a call.
async fn under_way(host: &mut Host, token: &str) {
    loop {
        let message = host.next().await.expect("more of it");
        if message["method"] == "notifications/progress"
            && message["params"]["progressToken"] == token
        {
            return;
        }
    }
}

async fn call_off(host: &mut Host, id: u64) {
    let method = "notifications/cancelled";
    let params = json!({"requestId": id});
    host.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .await;
}

#[tokio::test]
async fn it_is_passed_on_to_a_server_on_node() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let straight = ["--on", server.urls()[0].as_str()];
    let cut = ["--on", link.url()];
    for args in [&[][..], &straight, &cut] {
        let tap = Wiretap::new();
        let mut host = Host::start(args, &tap.on(&everything()));
        host.shake_hands().await;
        let first = call(LONG, &json!({"duration": 0.5, "steps": 50}), "first");
        let first = host.ask("tools/call", first).await;
        under_way(&mut host, "first").await;
        if args == cut {
            link.cut().await;
        }
        call_off(&mut host, first).await;
        assert_eq!(tap.called_off(LONG).await, json!(first));
        // This one takes longer than what is left of the first, so an answer to that would be
        // among what comes before.
        let second = call(LONG, &json!({"duration": 1, "steps": 4}), "second");
        let second = host.ask("tools/call", second).await;
        let (answer, before) = host.answer(second).await;
        let words = answer["result"]["content"][0]["text"].as_str();
        assert!(
            words.is_some_and(|words| words.contains("Steps: 4.")),
            "{answer}"
        );
        let of_first = |message: &&Value| message["id"] == json!(first);
        assert_eq!(before.iter().find(of_first), None);
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

#[tokio::test]
async fn it_is_passed_on_to_a_server_on_python() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let straight = ["--on", server.urls()[0].as_str()];
    let cut = ["--on", link.url()];
    for args in [&[][..], &straight, &cut] {
        let mut host = Host::start(args, &waiting());
        host.shake_hands().await;
        let first = call("wait", &json!({}), "first");
        let first = host.ask("tools/call", first).await;
        under_way(&mut host, "first").await;
        if args == cut {
            link.cut().await;
        }
        call_off(&mut host, first).await;
        let told = host.ask(
            "tools/call",
            call("who_was_called_off", &json!({}), "second"),
        );
        let told = told.await;
        let (told, before) = host.answer(told).await;
        assert_eq!(told["result"]["content"][0]["text"], first.to_string());
        let of_first = |message: &&Value| message["id"] == json!(first);
        assert_eq!(before.iter().find(of_first), None);
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

/// Has the SDK for Python call something off through the proxy.
async fn from_python(mode: &str, on: &[&str], command: &[String], calls: [Value; 2]) -> Value {
    let mark = Mark::new();
    let variable = format!("{}={}", Mark::VARIABLE, mark.as_str());
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
        .expect("it starts");
    let output = patience::soon("the client", child.wait_with_output()).await;
    let output = output.expect("it can be waited for");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    mark.gone().await;
    serde_json::from_slice(&output.stdout).expect("what it heard")
}

#[tokio::test]
async fn the_sdk_for_python_calls_off_through_the_proxy() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on] {
        let tap = Wiretap::new();
        let calls = [
            json!([LONG, {"duration": 1000, "steps": 100_000}]),
            json!([LONG, {"duration": 0.2, "steps": 4}]),
        ];
        let heard = from_python("legacy", args, &tap.on(&everything()), calls).await;
        tap.called_off(LONG).await;
        assert_eq!(heard["called_off"], true, "{heard}");
        assert!(
            heard["words"]
                .as_str()
                .is_some_and(|words| words.contains("Steps: 4.")),
            "{heard}"
        );
        let steps = heard["progress"].as_array().expect("a list");
        assert!(steps.iter().all(|step| step[1] == 4.0), "{heard}");

        for mode in ["legacy", "auto"] {
            let tap = Wiretap::new();
            let calls = [json!(["wait", {}]), json!(["who_was_called_off", {}])];
            let heard = from_python(mode, args, &tap.on(&waiting()), calls).await;
            let off = tap.called_off("wait").await;
            assert_eq!(heard["words"], off.to_string(), "{heard}");
            assert_eq!(heard["called_off"], true, "{heard}");
        }
    }
}

/// Our own client, whose server is in truth the proxy.
fn ensemble(on: &[&str], command: &[String], mark: &Mark) -> Ensemble {
    let variable = format!("{}={}", Mark::VARIABLE, mark.as_str());
    let mut args = vec!["mcp", "proxy", "-e", &variable];
    args.extend(on);
    args.push("--");
    args.extend(command.iter().map(String::as_str));
    let program = outpost().binary().display().to_string();
    let server = ServerConfig::read("one", &json!({"command": program, "args": args}));
    let servers = BTreeMap::from([("one".to_owned(), server.expect("it makes sense"))]);
    let here = Local::new(LocalOptions::default()).expect("a place");
    let launchers = Launchers {
        local: Arc::new(LocalLauncher::new(Arc::new(here))),
        remote: None,
    };
    Ensemble::start(servers, &launchers, &Limits::default())
}

#[tokio::test]
async fn our_own_client_calls_off_through_the_proxy() {
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
            (waiting(), "wait", json!({}), "who_was_called_off"),
        ] {
            let (tap, mark) = (Wiretap::new(), Mark::new());
            let ensemble = ensemble(args, &tap.on(&command), &mark);
            let (sender, mut steps) = mpsc::channel(64);
            let arguments = arguments.as_object().expect("an object").clone();
            patience::soon("a step", async {
                tokio::select! {
                    answer = ensemble.call("one", long, arguments, Some(&sender)) => {
                        panic!("nobody waited for {answer:?}")
                    }
                    step = steps.recv() => assert!(step.is_some()),
                }
            })
            .await;
            let off = tap.called_off(long).await;
            let hello = json!({"message": "hello"});
            let hello = hello.as_object().expect("an object").clone();
            let next = ensemble.call("one", short, hello, None);
            let next = patience::soon("an answer", next).await.expect("one");
            let ContentBlock::Text(words) = &next.content[0] else {
                panic!("{next:?}")
            };
            match short {
                "echo" => assert_eq!(words.text, "Echo: hello"),
                _ => assert_eq!(words.text, off.to_string()),
            }
            patience::soon("its end", ensemble.close()).await;
            mark.gone().await;
        }
    }
}
