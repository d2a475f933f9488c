//! A server that is in truth running elsewhere.

use outpost_testkit::{Link, patience};
use rustix::process::{Pid, Signal};
use serde_json::json;

use super::{Host, everything, text, time};
use crate::outpost;

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn a_host_sees_no_difference() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let mut host = Host::start(args, &everything());
        host.shake_hands().await;
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
        let slow = host.ask("tools/call", slow).await;
        let (_, before) = host.answer(slow).await;
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
        // What the server says beside its messages is said beside them here, too.
        assert!(text(&output.stderr).contains("STDIO"), "{output:?}");
    }
}

#[tokio::test]
async fn the_newest_revision_goes_through_as_well() {
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
async fn a_cut_in_the_middle_of_a_call_goes_unnoticed() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let mut host = Host::start(&["--on", link.url()], &everything());
    host.shake_hands().await;
    let params = json!({
        "name": "trigger-long-running-operation",
        "arguments": {"duration": 1, "steps": 10},
        "_meta": {"progressToken": "p"},
    });
    let id = host.ask("tools/call", params).await;
    // It is under way, and goes on after each cut.
    let mut steps = Vec::new();
    let result = loop {
        let message = host.next().await.expect("more of it");
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
async fn a_lost_executor_ends_it_with_a_word() {
    // One that was launched for this can't be reached again, so it is lost at once.
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let launched = format!(
        "stdio:sh -c 'echo $$ > {}; exec {} serve --listen stdio://'",
        pid.display(),
        outpost().binary().display()
    );
    let script = "echo '{\"ready\":true}'; exec cat";
    let mut host = Host::start(&["--on", &launched], &sh(script));
    assert_eq!(host.next().await, Some(json!({"ready": true})));
    let pid = std::fs::read_to_string(pid).expect("it was written");
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    rustix::process::kill_process(pid.expect("a number"), Signal::TERM).expect("it is there");
    let output = host.ended().await;
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    let words = text(&output.stderr);
    let line = "outpost: exec-server transport disconnected: ";
    assert!(words.lines().any(|said| said.starts_with(line)), "{words}");
}

#[tokio::test]
async fn what_is_no_message_goes_elsewhere() {
    let script =
        "echo hello; echo '{\"a\":1}'; printf '{broken\\r\\n'; echo oops >&2; printf '{\"b\":2}'";
    let mut host = Host::start(&[], &sh(script));
    assert_eq!(host.next().await, Some(json!({"a": 1})));
    assert_eq!(host.next().await, Some(json!({"b": 2})));
    assert_eq!(host.next().await, None);
    let output = host.ended().await;
    assert_eq!(output.status.code(), Some(0));
    let mut lines: Vec<_> = text(&output.stderr).lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["hello", "oops", "{broken"]);
}

#[tokio::test]
async fn the_end_of_the_input_ends_whoever_is_left() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        // It doesn't care about its input, and not about signals.
        let script = "trap '' TERM HUP INT; echo '{}'; while :; do sleep 1000; done";
        let mut host = Host::start(args, &sh(script));
        assert_eq!(host.next().await, Some(json!({})));
        assert_eq!(host.close().await.status.code(), Some(0));
    }
}

#[tokio::test]
async fn it_ends_as_its_server_does() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let host = Host::start(args, &sh("echo why >&2; exit 7"));
        let output = host.ended().await;
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(text(&output.stderr), "why\n");
        let host = Host::start(args, &["/nowhere/at/all".to_owned()]);
        let output = host.ended().await;
        assert_eq!(output.status.code(), Some(127), "{output:?}");
    }
}

#[tokio::test]
async fn a_signal_ends_both() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let mut host = Host::start(args, &sh("echo '{}'; exec sleep 1000"));
        assert_eq!(host.next().await, Some(json!({})));
        let pid = host.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        rustix::process::kill_process(pid, Signal::TERM).expect("it is there");
        let output = patience::soon("its end", host.ended()).await;
        assert_eq!(output.status.code(), Some(143), "{output:?}");
    }
}

#[tokio::test]
async fn a_server_elsewhere_has_what_it_was_given() {
    let server = outpost().env("ITS_OWN", "theirs").start().await;
    let script = "echo \"[{\\\"own\\\":\\\"$ITS_OWN\\\",\\\"given\\\":\\\"$GIVEN\\\",\\\"home\\\":\\\"$HOME\\\"}]\"";
    let on = ["--on", server.urls()[0].as_str(), "-e", "GIVEN=ours"];
    let mut host = Host::start(&on, &sh(script));
    let told = host.next().await.expect("a message");
    assert_eq!(told[0]["own"], "");
    assert_eq!(told[0]["given"], "ours");
    assert_ne!(told[0]["home"], "");
    host.ended().await;
}
