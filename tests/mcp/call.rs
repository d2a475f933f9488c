//! Tests `outpost mcp call`.

use outpost_testkit::deadline;
use outpost_testkit::mcp_server::StdinRecorder;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{McpConfig, everything, text, time};
use crate::outpost;

fn configured() -> McpConfig {
    McpConfig::with(&[
        ("everything", &everything(), ""),
        ("time", &time(), "environment = \"remote\""),
    ])
}

#[tokio::test]
async fn result_is_printed_for_people_and_programs() {
    let config = configured();
    let sum = "{\"a\": 2, \"b\": 3}";
    let called = config
        .run(&["mcp", "call", "everything", "get-sum", sum])
        .await;
    assert_eq!(called.status.code(), Some(0), "{called:?}");
    assert_eq!(text(&called.stdout), "The sum of 2 and 3 is 5.\n");
    assert_eq!(text(&called.stderr), "");

    let image = config
        .run(&["mcp", "call", "everything", "get-tiny-image"])
        .await;
    assert!(
        text(&image.stdout).contains("[image image/png, "),
        "{image:?}"
    );

    let server = outpost().start().await;
    let zone = "{\"timezone\": \"UTC\"}";
    let on = ["--on", &server.urls()[0], "--json"];
    let now = [
        &["mcp", "call", "time", "get_current_time", zone][..],
        &on[..],
    ]
    .concat();
    let now = config.run(&now).await;
    let now: Value = serde_json::from_slice(&now.stdout).expect("JSON");
    assert!(
        now["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("UTC"))
    );
}

#[tokio::test]
async fn disabled_server_is_not_started() {
    let dir = tempfile::tempdir().expect("a directory");
    let started = dir.path().join("started");
    let script = format!("touch '{}'", started.display());
    let command = ["sh", "-c", &script].map(str::to_owned);
    for (more, starts) in [("enabled = false", false), ("", true)] {
        let config = McpConfig::with(&[("off", &command, more)]);
        let called = config.run(&["mcp", "call", "off", "x"]).await;
        assert_eq!(called.status.code(), Some(1), "{called:?}");
        let rejected = "outpost: MCP server off is disabled; \
                       set `enabled = true` in [mcp_servers.off] to use it\n";
        assert_eq!(text(&called.stderr) == rejected, !starts, "{called:?}");
        assert_eq!(started.exists(), starts, "{more}");
    }
}

#[tokio::test]
async fn exit_code_tells_tool_server_and_executor_failures_apart() {
    let config = configured();
    for (args, code, message) in [
        (&["everything", "get-sum", "{\"a\": \"x\"}"][..], 3, ""),
        (&["everything", "echo", "[]"], 2, "expected a JSON object"),
        (&["unknown", "echo"], 1, "there is no MCP server unknown"),
        (
            &["time", "get_current_time"],
            1,
            "MCP server time has environment = \"remote\"",
        ),
        (
            &["time", "x", "--on", "ws://127.0.0.1:1"],
            255,
            "cannot connect to ws://127.0.0.1:1",
        ),
        (
            &[
                "everything",
                "trigger-long-running-operation",
                "{\"duration\": 1000}",
                "--timeout",
                "500ms",
            ],
            1,
            "no response within 500ms",
        ),
    ] {
        let called = config.run(&[&["mcp", "call"], args].concat()).await;
        assert_eq!(called.status.code(), Some(code), "{args:?}: {called:?}");
        assert!(
            text(&called.stderr).contains(message),
            "{args:?}: {called:?}"
        );
    }
}

#[tokio::test]
async fn interrupt_ends_the_call_and_leaves_nothing() {
    let config = configured();
    let tool = "trigger-long-running-operation";
    let args = ["mcp", "call", "everything", tool, "{\"duration\": 1000}"];
    let child = config.command(&args).spawn().expect("spawn");
    config.tag.alive(1).await;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, Signal::INT).expect("it exists");
    let output = deadline::expect_soon("its exit", child.wait_with_output()).await;
    assert_eq!(output.expect("it ran").status.code(), Some(130));
    config.tag.gone().await;
}

#[tokio::test]
async fn server_is_notified_of_interrupt_and_timeout_first() {
    let tool = "trigger-long-running-operation";
    let arguments = "{\"duration\": 1000, \"steps\": 2}";
    let call = ["mcp", "call", "everything", tool, arguments];

    let recorder = StdinRecorder::new();
    let config = McpConfig::with(&[("everything", &recorder.wrap(&everything()), "")]);
    let child = config.command(&call).spawn().expect("spawn");
    let called = || (recorder.count("tools/call") == 1).then_some(());
    deadline::poll_until("the call", called).await;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, Signal::INT).expect("it exists");
    let output = deadline::expect_soon("its exit", child.wait_with_output()).await;
    assert_eq!(output.expect("it ran").status.code(), Some(130));
    config.tag.gone().await;
    recorder.cancelled_call(tool).await;

    let recorder = StdinRecorder::new();
    let config = McpConfig::with(&[("everything", &recorder.wrap(&everything()), "")]);
    let with_timeout = [&call[..], &["--timeout", "500ms"]].concat();
    let called = config.run(&with_timeout).await;
    assert_eq!(called.status.code(), Some(1), "{called:?}");
    recorder.cancelled_call(tool).await;
}
