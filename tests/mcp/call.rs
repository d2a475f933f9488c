//! `outpost mcp call`.

use outpost_testkit::mcp::Wiretap;
use outpost_testkit::patience;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{Configured, everything, text, time};
use crate::outpost;

fn configured() -> Configured {
    Configured::with(&[
        ("everything", &everything(), ""),
        ("time", &time(), "environment = \"remote\""),
    ])
}

#[tokio::test]
async fn a_result_is_printed_for_people_and_for_programs() {
    let configured = configured();
    let sum = "{\"a\": 2, \"b\": 3}";
    let called = configured
        .run(&["mcp", "call", "everything", "get-sum", sum])
        .await;
    assert_eq!(called.status.code(), Some(0), "{called:?}");
    assert_eq!(text(&called.stdout), "The sum of 2 and 3 is 5.\n");
    assert_eq!(text(&called.stderr), "");

    let image = configured
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
    let now = configured.run(&now).await;
    let now: Value = serde_json::from_slice(&now.stdout).expect("JSON");
    assert!(
        now["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("UTC"))
    );
}

#[tokio::test]
async fn a_server_that_is_disabled_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = folder.path().join("started");
    let script = format!("touch '{}'", started.display());
    let command = ["sh", "-c", &script].map(str::to_owned);
    for (more, starts) in [("enabled = false", false), ("", true)] {
        let configured = Configured::with(&[("off", &command, more)]);
        let called = configured.run(&["mcp", "call", "off", "x"]).await;
        assert_eq!(called.status.code(), Some(1), "{called:?}");
        let refused = "outpost: MCP server off is disabled; \
                       `enabled = true` in [mcp_servers.off] changes that\n";
        assert_eq!(text(&called.stderr) == refused, !starts, "{called:?}");
        assert_eq!(started.exists(), starts, "{more}");
    }
}

#[tokio::test]
async fn the_exit_code_tells_a_tool_from_a_server_from_an_executor() {
    let configured = configured();
    for (args, code, words) in [
        (&["everything", "get-sum", "{\"a\": \"x\"}"][..], 3, ""),
        (&["everything", "echo", "[]"], 2, "no JSON object"),
        (&["nobody", "echo"], 1, "there is no MCP server nobody"),
        (
            &["time", "get_current_time"],
            1,
            "MCP server time is to run remotely",
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
            "no answer within 500ms",
        ),
    ] {
        let called = configured.run(&[&["mcp", "call"], args].concat()).await;
        assert_eq!(called.status.code(), Some(code), "{args:?}: {called:?}");
        assert!(text(&called.stderr).contains(words), "{args:?}: {called:?}");
    }
}

#[tokio::test]
async fn an_interrupt_ends_it_and_leaves_nothing() {
    let configured = configured();
    let tool = "trigger-long-running-operation";
    let args = ["mcp", "call", "everything", tool, "{\"duration\": 1000}"];
    let child = configured.command(&args).spawn().expect("it starts");
    configured.mark.alive(1).await;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, Signal::INT).expect("it is there");
    let ended = patience::soon("its end", child.wait_with_output()).await;
    assert_eq!(ended.expect("it ran").status.code(), Some(130));
    configured.mark.gone().await;
}

#[tokio::test]
async fn a_server_is_told_of_an_interrupt_and_of_a_timeout_before_it_ends() {
    let tool = "trigger-long-running-operation";
    let arguments = "{\"duration\": 1000, \"steps\": 2}";
    let call = ["mcp", "call", "everything", tool, arguments];

    let tap = Wiretap::new();
    let configured = Configured::with(&[("everything", &tap.on(&everything()), "")]);
    let child = configured.command(&call).spawn().expect("it starts");
    let called = || (tap.count("tools/call") == 1).then_some(());
    patience::seen("the call", called).await;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, Signal::INT).expect("it is there");
    let ended = patience::soon("its end", child.wait_with_output()).await;
    assert_eq!(ended.expect("it ran").status.code(), Some(130));
    configured.mark.gone().await;
    tap.called_off(tool).await;

    let tap = Wiretap::new();
    let configured = Configured::with(&[("everything", &tap.on(&everything()), "")]);
    let hurried = [&call[..], &["--timeout", "500ms"]].concat();
    let called = configured.run(&hurried).await;
    assert_eq!(called.status.code(), Some(1), "{called:?}");
    tap.called_off(tool).await;
}
