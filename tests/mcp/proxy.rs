//! Tests `outpost mcp proxy`.

use outpost_testkit::{FaultyLink, deadline};
use rustix::process::{Pid, Signal};
use serde_json::json;

use super::{Host, everything, text, time};
use crate::outpost;

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn proxied_server_behaves_like_a_local_one() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let mut host = Host::start(args, &everything());
        host.handshake().await;
        let tools = host.call("tools/list", json!({})).await;
        let tools = tools["result"]["tools"].as_array().expect("a list").clone();
        assert!(tools.iter().any(|tool| tool["name"] == "get-sum"));
        let sum = host.tool("get-sum", json!({"a": 2, "b": 3})).await;
        assert_eq!(sum["content"][0]["text"], "The sum of 2 and 3 is 5.");
        let image = host.tool("get-tiny-image", json!({})).await;
        let blocks = image["content"].as_array().expect("a list");
        let image = blocks.iter().find(|block| block["type"] == "image");
        let data = image.and_then(|image| image["data"].as_str());
        assert!(
            data.is_some_and(|data| data.starts_with("iVBORw0KGgo")),
            "{blocks:?}"
        );
        let resources = host.call("resources/list", json!({})).await;
        let uri = &resources["result"]["resources"][0]["uri"];
        let read = host.call("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["result"]["contents"][0]["uri"], *uri, "{read}");
        let slow = json!({
            "name": "trigger-long-running-operation",
            "arguments": {"duration": 0.4, "steps": 4},
            "_meta": {"progressToken": "p"},
        });
        let slow = host.send_request("tools/call", slow).await;
        let (_, before) = host.wait_response(slow).await;
        let steps: Vec<_> = before
            .iter()
            .filter(|message| message["params"]["progressToken"] == "p")
            .map(|message| message["params"]["progress"].clone())
            .collect();
        assert_eq!(steps, [1, 2, 3, 4].map(|step| json!(step)));
        let message = "0123456789abcdef".repeat(128 * 1024);
        let echo = host.tool("echo", json!({"message": message})).await;
        assert!(echo["content"][0]["text"] == format!("Echo: {message}"));
        let output = host.close().await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        // The server's stderr is passed on to the proxy's.
        assert!(text(&output.stderr).contains("STDIO"), "{output:?}");
    }
}

#[tokio::test]
async fn newest_revision_passes_through() {
    let server = outpost().start().await;
    let mut host = Host::start(&["--on", &server.urls()[0]], &time());
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let found = host.call("server/discover", meta.clone()).await;
    let versions = &found["result"]["supportedVersions"];
    assert!(
        versions
            .as_array()
            .expect("a list")
            .contains(&json!("2026-07-28"))
    );
    let mut params = meta;
    params["name"] = json!("get_current_time");
    params["arguments"] = json!({"timezone": "UTC"});
    let now = host.call("tools/call", params).await;
    let now = now["result"]["content"][0]["text"].as_str().expect("text");
    assert!(now.contains("\"timezone\": \"UTC\""), "{now}");
    assert_eq!(host.close().await.status.code(), Some(0));
}

#[tokio::test]
async fn cut_during_a_call_is_transparent() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let mut host = Host::start(&["--on", link.url()], &everything());
    host.handshake().await;
    let params = json!({
        "name": "trigger-long-running-operation",
        "arguments": {"duration": 1, "steps": 10},
        "_meta": {"progressToken": "p"},
    });
    let id = host.send_request("tools/call", params).await;
    // The call is running and continues after each cut.
    let mut steps = Vec::new();
    let result = loop {
        let message = host.next().await.expect("more output");
        if message["method"] == "notifications/progress" {
            steps.push(message["params"]["progress"].clone());
            if steps.len() % 3 == 1 {
                link.cut().await;
            }
        } else if message["id"] == json!(id) {
            break message;
        }
    };
    assert!(
        result["result"]["content"][0]["text"]
            .as_str()
            .is_some_and(|t| t.contains("completed"))
    );
    let all: Vec<_> = (1..=10).map(|step| json!(step)).collect();
    assert_eq!(steps, all, "every step once, and in order");
    assert_eq!(host.close().await.status.code(), Some(0));
}

#[tokio::test]
async fn lost_executor_is_reported() {
    // A launched server can't be reached again, so its loss is final at once.
    let dir = tempfile::tempdir().expect("a directory");
    let pid = dir.path().join("pid");
    let launched = format!(
        "stdio:sh -c 'echo $$ > {}; exec {} serve --listen stdio://'",
        pid.display(),
        outpost().binary().display()
    );
    let script = "echo '{\"ready\":true}'; exec cat";
    let mut host = Host::start(&["--on", &launched], &sh(script));
    assert_eq!(host.next().await, Some(json!({"ready": true})));
    let pid = std::fs::read_to_string(pid).expect("written");
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    rustix::process::kill_process(pid.expect("a number"), Signal::TERM).expect("it exists");
    let output = host.finish().await;
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    let text_content = text(&output.stderr);
    let line = "outpost: exec-server transport disconnected: ";
    assert!(
        text_content
            .lines()
            .any(|printed| printed.starts_with(line)),
        "{text_content}"
    );
}

#[tokio::test]
async fn non_messages_go_to_stderr() {
    let script =
        "echo hello; echo '{\"a\":1}'; printf '{broken\\r\\n'; echo oops >&2; printf '{\"b\":2}'";
    let mut host = Host::start(&[], &sh(script));
    assert_eq!(host.next().await, Some(json!({"a": 1})));
    assert_eq!(host.next().await, Some(json!({"b": 2})));
    assert_eq!(host.next().await, None);
    let output = host.finish().await;
    assert_eq!(output.status.code(), Some(0));
    let mut lines: Vec<_> = text(&output.stderr).lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["hello", "oops", "{broken"]);
}

#[tokio::test]
async fn end_of_input_ends_the_server() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        // It ignores the end of its input, and signals.
        let script = "trap '' TERM HUP INT; echo '{}'; while :; do sleep 1000; done";
        let mut host = Host::start(args, &sh(script));
        assert_eq!(host.next().await, Some(json!({})));
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

#[tokio::test]
async fn exit_code_is_the_servers() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let host = Host::start(args, &sh("echo why >&2; exit 7"));
        let output = host.finish().await;
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(text(&output.stderr), "why\n");
        let host = Host::start(args, &["/nowhere/at/all".to_owned()]);
        let output = host.finish().await;
        assert_eq!(output.status.code(), Some(127), "{output:?}");
    }
}

#[tokio::test]
async fn signal_ends_proxy_and_server() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let mut host = Host::start(args, &sh("echo '{}'; exec sleep 1000"));
        assert_eq!(host.next().await, Some(json!({})));
        let pid = host.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        rustix::process::kill_process(pid, Signal::TERM).expect("it exists");
        let output = deadline::expect_soon("its exit", host.finish()).await;
        assert_eq!(output.status.code(), Some(143), "{output:?}");
    }
}

#[tokio::test]
async fn remote_server_has_the_given_variables() {
    let server = outpost().env("ITS_OWN", "theirs").start().await;
    let script = "echo \"[{\\\"own\\\":\\\"$ITS_OWN\\\",\\\"given\\\":\\\"$GIVEN\\\",\\\"home\\\":\\\"$HOME\\\"}]\"";
    let on = ["--on", server.urls()[0].as_str(), "-e", "GIVEN=ours"];
    let mut host = Host::start(&on, &sh(script));
    let message = host.next().await.expect("a message");
    assert_eq!(message[0]["own"], "");
    assert_eq!(message[0]["given"], "ours");
    assert_ne!(message[0]["home"], "");
    host.finish().await;
}
