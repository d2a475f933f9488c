//! The tools for long-running processes.

use std::time::Duration;

use outpost_mcp::serve::ToolLimits;
use serde_json::{Value, json};

use super::harness::{
    TestOptions, TestSession, in_each_environment, in_each_environment_with, wait_gone,
};

/// Reads the output until it contains `text`, and returns the cursor.
async fn read_until(session: &TestSession, id: &Value, text: &str) -> Value {
    let mut output = String::new();
    let mut cursor = json!(0);
    loop {
        let arguments = json!({"process_id": id, "cursor": cursor, "wait_ms": 20_000});
        let page = session.call("read_output", arguments).await;
        output.push_str(page["output"].as_str().unwrap());
        cursor = page["cursor"].clone();
        if output.contains(text) {
            return cursor;
        }
        assert_eq!(page["running"], true, "only {output:?}");
    }
}

#[tokio::test]
async fn process_is_started_written_to_and_exits() {
    in_each_environment(async |session| {
        let script = "echo ready; while read line; do echo \"got $line\"; done; echo over; exit 5";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        assert_eq!((&started["running"], &started["output"]), (&json!(true), &json!("ready\n")));

        let written = session
            .call("write_input", json!({"process_id": id, "text": "one\n"}))
            .await;
        assert_eq!(written["cursor"], started["cursor"]);
        let read = json!({"process_id": id, "cursor": written["cursor"], "wait_ms": 20_000});
        let page = session.call("read_output", read.clone()).await;
        assert_eq!(page["output"], "got one\n");
        let again = session.call("read_output", read).await;
        assert_eq!(again["output"], "got one\n", "reading consumes nothing");

        let end = json!({"process_id": id, "text": "two\n", "end_input": true});
        session.call("write_input", end).await;
        let last = session
            .call(
                "read_output",
                json!({"process_id": id, "cursor": page["cursor"], "wait_ms": 20_000, "wait_for": "exit"}),
            )
            .await;
        assert_eq!(last["output"], "got two\nover\n");
        assert_eq!((&last["running"], &last["exit_code"]), (&json!(false), &json!(5)));

        let too_late = json!({"process_id": id, "text": "three\n"});
        let message = session.call_failing("write_input", too_late).await;
        assert!(message.contains("has exited with code 5"), "{message}");
        let stopped = session.call("stop_process", json!({"process_id": id})).await;
        assert_eq!(stopped["was_running"], false);
    })
    .await;
}

#[tokio::test]
async fn process_never_blocks_on_unread_output() {
    in_each_environment(async |session| {
        let script = "seq 1 1000000; echo done > done; exec sleep 1000";
        let arguments = json!({"command": script, "wait_ms": 0});
        let started = session.call("start_process", arguments).await;
        let path = session.path("done");
        outpost_testkit::deadline::poll_until("the end of its output", || {
            path.exists().then_some(())
        })
        .await;
        let id = &started["process_id"];
        let stopped = session
            .call("stop_process", json!({"process_id": id}))
            .await;
        assert_eq!(stopped["was_running"], true);
        assert_eq!(stopped["exit_code"], 143, "terminated by SIGTERM");
        let end = stopped["cursor"].as_u64().unwrap();
        let read = json!({"process_id": id, "cursor": end - 16});
        let last = session.call("read_output", read).await;
        assert_eq!(last["output"], "\n999999\n1000000\n");
    })
    .await;
}

#[tokio::test]
async fn stop_terminates_the_process_tree() {
    in_each_environment(async |session| {
        let script = "trap '' TERM HUP; sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 1; done' & wait";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        read_until(session, id, "\n").await;
        let pid = session.call("read_output", json!({"process_id": id})).await;
        let stop = json!({"process_id": id, "grace_ms": 100});
        let stopped = session.call("stop_process", stop).await;
        assert_eq!(stopped["exit_code"], 137);
        wait_gone(pid["output"].as_str().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn terminal_has_size_and_control_keys() {
    in_each_environment(async |session| {
        let script = "trap 'stty size' WINCH; trap 'echo caught; exit 9' INT; stty size; while :; do sleep 0.1; done";
        let arguments =
            json!({"command": script, "tty": true, "rows": 30, "cols": 100, "wait_ms": 20_000});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        read_until(session, id, "30 100").await;
        let resize = json!({"process_id": id, "rows": 40, "cols": 120});
        session.call("resize_terminal", resize).await;
        read_until(session, id, "40 120").await;
        let key = json!({"process_id": id, "text": "\u{3}"});
        session.call("write_input", key).await;
        read_until(session, id, "caught").await;
        let wait = json!({"process_id": id, "wait_for": "exit", "wait_ms": 20_000});
        assert_eq!(session.call("read_output", wait).await["exit_code"], 9);
    })
    .await;
}

#[tokio::test]
async fn signals_are_delivered() {
    in_each_environment(async |session| {
        let script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        read_until(session, id, "ready").await;
        let (_, text) = session
            .call_with_text("send_signal", json!({"process_id": id, "signal": "USR1"}))
            .await;
        assert!(text.contains("sent USR1"), "{text}");
        read_until(session, id, "usr1").await;
        for name in ["SIGWINCH", "winch", "Sigcont"] {
            let arguments = json!({"process_id": id, "signal": name});
            let (sent, _) = session.call_with_text("send_signal", arguments).await;
            let signal = sent["signal"].as_str().unwrap();
            assert!(name.to_uppercase().ends_with(signal), "{name}: {signal}");
        }
        let kill = json!({"process_id": id, "signal": "KILL"});
        session.call("send_signal", kill.clone()).await;
        let wait = json!({"process_id": id, "wait_for": "exit", "wait_ms": 20_000});
        assert_eq!(session.call("read_output", wait).await["exit_code"], 137);
        let message = session.call_failing("send_signal", kill).await;
        assert!(message.contains("has exited"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn one_stream_can_be_selected() {
    in_each_environment(async |session| {
        let script = "echo out; echo err >&2";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        for (stream, expected) in [("stdout", "out\n"), ("stderr", "err\n")] {
            let read =
                json!({"process_id": id, "stream": stream, "wait_for": "exit", "wait_ms": 20_000});
            assert_eq!(session.call("read_output", read).await["output"], expected);
        }
    })
    .await;
}

#[tokio::test]
async fn wait_times_out_without_an_error() {
    in_each_environment(async |session| {
        let arguments = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
        let started = session.call("start_process", arguments).await;
        let id = &started["process_id"];
        for wait_for in ["output", "exit"] {
            let read = json!({"process_id": id, "wait_ms": 50, "wait_for": wait_for});
            let (page, text) = session.call_with_text("read_output", read).await;
            assert_eq!(
                (&page["running"], &page["output"]),
                (&json!(true), &json!(""))
            );
            assert!(text.contains("running for"), "{text}");
        }
        let (listed, text) = session.call_with_text("list_processes", json!({})).await;
        assert_eq!(listed["processes"][0]["command"], "sleep 1000");
        assert!(text.contains("sleep 1000"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn running_processes_are_limited_and_old_ones_dropped() {
    let options = TestOptions {
        limits: ToolLimits {
            running_processes: 2,
            exited_processes: 1,
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        let start = || {
            session.call(
                "start_process",
                json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
            )
        };
        let (one, two) = (start().await, start().await);
        let message = session
            .call_failing("start_process", json!({"argv": ["sleep", "1000"]}))
            .await;
        assert!(message.contains("2 processes are running"), "{message}");
        assert!(
            message.contains("stop_process"),
            "suggests a remedy: {message}"
        );
        for process in [&one, &two] {
            let stop = json!({"process_id": process["process_id"], "grace_ms": 0});
            session.call("stop_process", stop).await;
        }
        start().await;
        let read = |process: &Value| json!({"process_id": process["process_id"]});
        let message = session.call_failing("read_output", read(&one)).await;
        assert!(
            message.contains("list_processes"),
            "suggests a remedy: {message}"
        );
        session.call("read_output", read(&two)).await;
    })
    .await;
}

#[tokio::test]
async fn process_ids_differ_between_servers() {
    let (one, other) = (
        TestSession::local(TestOptions::default()).await,
        TestSession::local(TestOptions::default()).await,
    );
    let start = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
    let there = one.call("start_process", start.clone()).await;
    let here = other.call("start_process", start).await;
    assert_ne!(there["process_id"], here["process_id"]);
    for id in [
        there["process_id"].as_str().unwrap(),
        "",
        "1",
        "-1",
        "\u{0}",
    ] {
        let message = other
            .call_failing("read_output", json!({"process_id": id}))
            .await;
        assert!(message.contains("there is no process"), "{message}");
    }
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn resize_without_a_terminal_fails() {
    let session = TestSession::local(TestOptions::default()).await;
    let start = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
    let started = session.call("start_process", start).await;
    let resize = json!({"process_id": started["process_id"], "rows": 1, "cols": 1});
    let message = session.call_failing("resize_terminal", resize).await;
    assert!(message.contains("\"tty\": true"), "{message}");
    session.end().await;
}

#[tokio::test]
async fn wait_for_first_output_times_out() {
    let options = TestOptions {
        limits: ToolLimits {
            first_output: Duration::from_millis(50),
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        let start = json!({"argv": ["sleep", "1000"]});
        let started = session.call("start_process", start).await;
        assert_eq!(started["running"], true);
    })
    .await;
}
