//! Tests `outpost mcp serve` with a host on the Python SDK.

use std::process::Stdio;

use outpost_testkit::{ProcStats, TestTag, Transport, deadline};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Host, python};
use crate::outpost;

#[tokio::test]
async fn every_tool_works_from_the_python_sdk() {
    let tcp = outpost().start().await;
    let unix = outpost().on(Transport::Unix).start().await;
    let launched = format!(
        "stdio:'{}' serve --listen stdio://",
        outpost().binary().display()
    );
    let executors: [&[&str]; 4] = [
        &[],
        &["--on", &tcp.urls()[0]],
        &["--on", &unix.urls()[0]],
        &["--on", &launched],
    ];
    for (mode, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        // The older revision doesn't depend on the transport, so one remote is enough.
        let ways = if mode == "auto" { executors.len() } else { 2 };
        for executor in &executors[..ways] {
            let host = Host::new();
            let dir = host.dir.path().display().to_string();
            let args: Vec<&str> = executor.iter().copied().chain(["--cwd", &dir]).collect();
            let report = host
                .calls(
                    mode,
                    &args,
                    &[
                        ("run_command", json!({"command": "pwd; echo err >&2; exit 3"})),
                        ("start_process", json!({"argv": ["cat"], "tty": true, "wait_ms": 0})),
                        ("write_input", json!({"process_id": "@1.process_id", "text": "hello\n"})),
                        (
                            "read_output",
                            json!({"process_id": "@1.process_id", "cursor": "@2.cursor", "wait_ms": 20_000}),
                        ),
                        ("resize_terminal", json!({"process_id": "@1.process_id", "rows": 9, "cols": 9})),
                        ("list_processes", json!({})),
                        ("send_signal", json!({"process_id": "@1.process_id", "signal": "INT"})),
                        ("stop_process", json!({"process_id": "@1.process_id"})),
                        ("write_file", json!({"path": "a/b.txt", "content": "one\ntwo\n"})),
                        ("edit_file", json!({"path": "a/b.txt", "old_text": "two", "new_text": "2"})),
                        ("read_file", json!({"path": "a/b.txt"})),
                        ("search_files", json!({"pattern": "^2$"})),
                        ("list_directory", json!({"depth": 2})),
                        ("read_output", json!({"process_id": "unknown"})),
                    ],
                )
                .await;
            assert_eq!(report.0["revision"], revision);
            assert_eq!(report.0["tools"].as_array().map(Vec::len), Some(13));
            let canonical = host.dir.path().canonicalize().expect("a directory");
            let ran = report.structured(0);
            assert_eq!(
                ran["stdout"],
                format!("{}\n", canonical.display()),
                "{executor:?}"
            );
            assert_eq!(
                (&ran["stderr"], &ran["exit_code"]),
                (&json!("err\n"), &json!(3))
            );
            let printed = report.structured(3)["output"].as_str().expect("output");
            assert!(printed.starts_with("hello"), "{printed}");
            assert_eq!(report.structured(5)["processes"][0]["running"], true);
            assert_eq!(
                report.structured(7)["process_id"],
                report.structured(1)["process_id"]
            );
            assert_eq!(report.structured(10)["content"], "one\n2\n");
            assert_eq!(report.structured(11)["files"][0]["path"], "a/b.txt");
            assert_eq!(report.structured(12)["entries"][1]["name"], "a/b.txt");
            assert!(report.error_text(13).contains("there is no process"));
        }
    }
}

#[tokio::test]
async fn progress_of_a_long_command_is_reported() {
    for mode in ["legacy", "auto"] {
        let host = Host::new();
        let command = "echo step one; until [ -e progressed ]; do sleep 0.1; done";
        let report = host
            .calls(mode, &[], &[("run_command", json!({"command": command}))])
            .await;
        assert_eq!(report.structured(0)["exit_code"], 0);
        let progress = report.0["results"][0]["progress"]
            .as_array()
            .expect("progress");
        let message = progress[0][2].as_str().expect("text");
        assert!(message.contains("step one"), "{message}");
        assert_eq!(progress[0][1], 120.0);
    }
}

#[tokio::test]
async fn processes_end_with_the_host() {
    let server = outpost().start().await;
    for args in [&[][..], &["--on", &server.urls()[0]]] {
        let host = Host::new();
        let script = "trap '' HUP; setsid sh -c 'echo $$; exec sleep 1000' & wait";
        let start = json!({"command": script, "wait_ms": 20_000, "env": {"A": "b"}});
        let report = host.calls("auto", args, &[("start_process", start)]).await;
        let pid = report.structured(0)["output"]
            .as_str()
            .expect("a pid")
            .trim();
        let pid = pid.parse().expect("a pid");
        ProcStats::of(pid).wait_exited().await;
    }
}

#[tokio::test]
async fn cancelled_command_is_terminated() {
    let server = outpost().start().await;
    for args in [&[][..], &["--on", &server.urls()[0]]] {
        let (dir, tag) = (tempfile::tempdir().expect("a directory"), TestTag::new());
        let pid = dir.path().join("pid");
        let long = format!("echo $$ > '{}'; echo ready; exec sleep 1000", pid.display());
        let long = json!(["run_command", {"command": long}]).to_string();
        // This call returns after the other call has ended.
        let pid = format!("$(cat '{}')", pid.display());
        let short = format!("while kill -0 {pid} 2>&-; do sleep 0.05; done; echo gone");
        let short = json!(["run_command", {"command": short}]).to_string();
        let child = Command::new(python())
            .args([
                "-c",
                include_str!("../mcp/cancel.py"),
                "auto",
                &long,
                &short,
            ])
            .arg(outpost().binary())
            .args(["mcp", "serve"])
            .args(args)
            .env(TestTag::VARIABLE, tag.as_str())
            .env("XDG_STATE_HOME", tag.state_home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("spawn");
        let output = deadline::expect_soon("the client", child.wait_with_output()).await;
        let report: Value = serde_json::from_slice(&output.expect("it ran").stdout).expect("JSON");
        assert_eq!(report["cancelled"], true, "{report}");
        let message = report["text"].as_str().expect("text");
        assert!(message.contains("\ngone"), "{report}");
        tag.gone().await;
    }
}
