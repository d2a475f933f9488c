//! The tool `run_command`.

use std::time::Duration;

use outpost_mcp::serve::ToolLimits;
use serde_json::json;

use super::harness::{
    TestOptions, TestSession, in_each_environment, in_each_environment_with, soon, wait_gone,
};

#[tokio::test]
async fn command_returns_exit_code_and_output() {
    in_each_environment(async |session| {
        let command = "echo out; echo err >&2; exit 3";
        let (result, text) = session
            .call_with_text("run_command", json!({"command": command}))
            .await;
        assert_eq!(result["exit_code"], 3);
        assert_eq!(result["stdout"], "out\n");
        assert_eq!(result["stderr"], "err\n");
        assert_eq!(result["timed_out"], false);
        assert_eq!(result["truncated"], false);
        assert!(result["process_id"].is_null(), "nothing is left to read");
        let (state, output) = text.split_once('\n').unwrap();
        assert!(state.starts_with("exit code 3 after "), "{text}");
        assert_eq!(output, "--- stdout ---\nout\n--- stderr ---\nerr");
        let listed = session.call("list_processes", json!({})).await;
        assert_eq!(listed["processes"], json!([]), "the process was removed");
    })
    .await;
}

#[tokio::test]
async fn command_gets_cwd_env_and_stdin() {
    let options = TestOptions {
        env: vec![("ALWAYS", "set")],
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        std::fs::create_dir(session.path("sub")).unwrap();
        let script = "pwd; echo $ALWAYS $MINE; tr a-z A-Z; [[ a == a ]] && echo bash";
        let result = session
            .call(
                "run_command",
                json!({"command": script, "cwd": "sub", "env": {"MINE": "too"}, "stdin": "typed\n"}),
            )
            .await;
        let sub = session.path("sub").canonicalize().unwrap();
        let expected = format!("{}\nset too\nTYPED\nbash\n", sub.display());
        assert_eq!(result["stdout"], expected, "{result}");
        let argv = json!({"argv": ["printf", "%s|", "a b", "$HOME"]});
        let result = session.call("run_command", argv).await;
        assert_eq!(result["stdout"], "a b|$HOME|");
    })
    .await;
}

#[tokio::test]
async fn stdin_is_empty_by_default() {
    in_each_environment(async |session| {
        let result = session.call("run_command", json!({"argv": ["cat"]})).await;
        assert_eq!(
            (&result["exit_code"], &result["stdout"]),
            (&json!(0), &json!(""))
        );
    })
    .await;
}

#[tokio::test]
async fn timed_out_command_is_terminated_with_its_tree() {
    in_each_environment(async |session| {
        let script = "echo before; sleep 1000 & echo $!; wait";
        let arguments = json!({"command": script, "timeout_ms": 300});
        let (result, text) = session.call_with_text("run_command", arguments).await;
        assert_eq!(result["timed_out"], true);
        assert_eq!(result["exit_code"], 124);
        assert!(text.starts_with("exit code 124 after"), "{text}");
        let stdout = result["stdout"].as_str().unwrap();
        let pid = stdout
            .strip_prefix("before\n")
            .expect("the output before the timeout");
        wait_gone(pid).await;
        assert!(text.contains("timed out and was terminated"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn omitted_output_can_be_read() {
    in_each_environment(async |session| {
        let command = "seq 1 20000; seq 1 3 >&2";
        let arguments = json!({"command": command, "max_output_bytes": 1000});
        let result = session.call("run_command", arguments).await;
        assert_eq!(result["truncated"], true);
        assert_eq!(result["stderr"], "1\n2\n3\n");
        let stdout = result["stdout"].as_str().unwrap();
        assert!(stdout.starts_with("1\n2\n3\n") && stdout.ends_with("\n20000\n"));
        let note = stdout.lines().find(|line| line.starts_with("[…")).unwrap();
        let (head, tail) = stdout.split_once(note).unwrap();
        let (_, call) = note.split_once("read_output ").unwrap();
        let call = call.strip_suffix(" …]").unwrap();
        let mut call: serde_json::Value = serde_json::from_str(call).unwrap();
        assert_eq!(call["process_id"], result["process_id"]);

        let mut whole = head.to_owned();
        let expected: String = (1..=20000).map(|n| format!("{n}\n")).collect();
        while whole.len() < expected.len() - (tail.len() - 1) {
            let page = session.call("read_output", call.clone()).await;
            assert_eq!(page["missed_bytes"], 0);
            whole.push_str(page["output"].as_str().unwrap());
            call["cursor"] = page["cursor"].clone();
        }
        assert_eq!(whole, expected, "complete and without duplicates");
    })
    .await;
}

#[tokio::test]
async fn output_flood_is_bounded_and_reports_dropped_bytes() {
    let session = TestSession::local(TestOptions::default()).await;
    let command = "echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end";
    let (result, text) = session
        .call_with_text("run_command", json!({"command": command}))
        .await;
    let stdout = result["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("begin\n") && stdout.ends_with("\nend\n"));
    assert!(stdout.len() < 25_000 && text.len() < 25_000);
    assert!(stdout.contains("50.0 MB omitted"), "{}", &stdout[..200]);
    let id = &result["process_id"];
    let page = json!({"process_id": id, "cursor": 6, "max_output_bytes": 200_000});
    let page = session.call("read_output", page).await;
    assert_eq!(page["more"], true);
    let page = json!({"process_id": id, "cursor": 1_000_000, "max_output_bytes": 100});
    let page = session.call("read_output", page).await;
    assert!(page["missed_bytes"].as_u64().unwrap() > 40_000_000);
    session.end().await;
}

#[tokio::test]
async fn streams_can_be_merged() {
    in_each_environment(async |session| {
        let command = "echo one; echo two >&2";
        let arguments = json!({"command": command, "merge_stderr": true});
        let result = session.call("run_command", arguments).await;
        let stdout = result["stdout"].as_str().unwrap();
        assert!(["one\ntwo\n", "two\none\n"].contains(&stdout), "{stdout}");
        assert_eq!(result["stderr"], "");
    })
    .await;
}

#[tokio::test]
async fn leftover_process_is_reported_and_can_be_stopped() {
    let options = TestOptions {
        limits: ToolLimits {
            drain: Duration::from_millis(200),
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        let command = "sleep 1000 & echo $!";
        let (result, text) = session
            .call_with_text("run_command", json!({"command": command}))
            .await;
        assert_eq!(result["exit_code"], 0);
        assert_eq!(result["left_running"], true, "{text}");
        assert!(text.contains("stop_process {\"process_id\": \""), "{text}");
        let id = &result["process_id"];
        let stopped = session
            .call("stop_process", json!({"process_id": id}))
            .await;
        assert_eq!(stopped["was_running"], false);
        wait_gone(result["stdout"].as_str().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn cancelled_command_is_terminated() {
    in_each_environment(async |session| {
        let fifo = session.path("fifo");
        let script = "mkfifo fifo; sleep 1000 & echo $! > fifo; wait";
        let call = session
            .begin("run_command", json!({"command": script}))
            .await;
        let pid = soon("the pid", async {
            let made = || fifo.exists().then_some(());
            outpost_testkit::deadline::poll_until("the pipe", made).await;
            let read = move || std::fs::read_to_string(fifo);
            tokio::task::spawn_blocking(read).await.unwrap().unwrap()
        })
        .await;
        call.cancel(None).await.expect("send the cancellation");
        wait_gone(&pid).await;
        soon("the removal", async {
            while session.call("list_processes", json!({})).await["processes"] != json!([]) {}
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn progress_is_reported_on_request() {
    let options = TestOptions {
        limits: ToolLimits {
            progress: Duration::from_millis(50),
            ..ToolLimits::default()
        },
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        let script = "echo working hard; mkfifo fifo; cat fifo";
        let call = session
            .begin("run_command", json!({"command": script}))
            .await;
        let token = call.progress_token.clone();
        let mut progress = session.progress.lock().await;
        let mut last = 0.0;
        loop {
            let note = soon("progress", progress.recv()).await.unwrap();
            assert_eq!(note.progress_token, token);
            assert!(note.progress > last, "progress grows");
            last = note.progress;
            assert_eq!(note.total, Some(120.0));
            let text = note.message.unwrap();
            if text.contains("working hard") {
                assert!(text.starts_with("running for "), "{text}");
                break;
            }
        }
        std::fs::write(session.path("fifo"), "").unwrap();
        soon("its end", call.await_response()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn failed_start_is_a_tool_error() {
    in_each_environment(async |session| {
        for (arguments, text) in [
            (json!({"argv": ["/nope/nope"]}), "No such file or directory"),
            (
                json!({"command": "true", "cwd": "nope"}),
                "No such file or directory",
            ),
            (json!({}), "give either `command`"),
            (json!({"command": "a", "argv": ["b"]}), "not both"),
            (json!({"argv": []}), "`argv` is empty"),
        ] {
            let message = session.call_failing("run_command", arguments).await;
            assert!(message.contains(text), "{message}");
        }
        // A shell that doesn't find a command was started successfully.
        let result = session
            .call("run_command", json!({"command": "nope-nope"}))
            .await;
        assert_eq!(result["exit_code"], 127);
    })
    .await;
}

#[tokio::test]
async fn drain_does_not_count_against_the_timeout() {
    in_each_environment(async |session| {
        // The drain takes longer than the timeout.
        let run = json!({"command": "sleep 1000 & echo hello", "timeout_ms": 700});
        let (result, text) = session.call_with_text("run_command", run).await;
        assert_eq!(result["timed_out"], false, "{text}");
        assert_eq!(
            (&result["exit_code"], &result["stdout"]),
            (&json!(0), &json!("hello\n"))
        );
        assert_eq!(result["left_running"], true, "{text}");
        let stop = json!({"process_id": result["process_id"]});
        session.call("stop_process", stop).await;
    })
    .await;
}
