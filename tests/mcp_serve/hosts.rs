//! A host with the SDK for Python.

use std::process::Stdio;

use outpost_testkit::{Mark, Transport, patience};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Host, python};
use crate::outpost;

#[tokio::test]
async fn every_tool_works_from_the_other_sdk_wherever_it_is() {
    let tcp = outpost().start().await;
    let unix = outpost().on(Transport::Unix).start().await;
    let launched = format!(
        "stdio:'{}' serve --listen stdio://",
        outpost().binary().display()
    );
    let places: [&[&str]; 4] = [
        &[],
        &["--on", &tcp.urls()[0]],
        &["--on", &unix.urls()[0]],
        &["--on", &launched],
    ];
    for (mode, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        // To the older revision, one way to a server is like the other.
        let ways = if mode == "auto" { places.len() } else { 2 };
        for place in &places[..ways] {
            let host = Host::new();
            let folder = host.folder.path().display().to_string();
            let args: Vec<&str> = place.iter().copied().chain(["--cwd", &folder]).collect();
            let heard = host
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
                        ("read_output", json!({"process_id": "nobody"})),
                    ],
                )
                .await;
            assert_eq!(heard.0["revision"], revision);
            assert_eq!(heard.0["tools"].as_array().map(Vec::len), Some(13));
            let canonical = host.folder.path().canonicalize().expect("a folder");
            let ran = heard.members(0);
            assert_eq!(
                ran["stdout"],
                format!("{}\n", canonical.display()),
                "{place:?}"
            );
            assert_eq!(
                (&ran["stderr"], &ran["exit_code"]),
                (&json!("err\n"), &json!(3))
            );
            let said = heard.members(3)["output"].as_str().expect("output");
            assert!(said.starts_with("hello"), "{said}");
            assert_eq!(heard.members(5)["processes"][0]["running"], true);
            assert_eq!(
                heard.members(7)["process_id"],
                heard.members(1)["process_id"]
            );
            assert_eq!(heard.members(10)["content"], "one\n2\n");
            assert_eq!(heard.members(11)["files"][0]["path"], "a/b.txt");
            assert_eq!(heard.members(12)["entries"][1]["name"], "a/b.txt");
            assert!(heard.refusal(13).contains("there is no process"));
        }
    }
}

#[tokio::test]
async fn it_hears_of_the_progress_of_a_long_command() {
    for mode in ["legacy", "auto"] {
        let host = Host::new();
        let command = "echo step one; until [ -e heard ]; do sleep 0.1; done";
        let heard = host
            .calls(mode, &[], &[("run_command", json!({"command": command}))])
            .await;
        assert_eq!(heard.members(0)["exit_code"], 0);
        let notes = heard.0["answers"][0]["progress"].as_array().expect("notes");
        let words = notes[0][2].as_str().expect("words");
        assert!(words.contains("step one"), "{words}");
        assert_eq!(notes[0][1], 120.0);
    }
}

#[tokio::test]
async fn whatever_runs_ends_with_the_host() {
    let server = outpost().start().await;
    for args in [&[][..], &["--on", &server.urls()[0]]] {
        let host = Host::new();
        let script = "trap '' HUP; setsid sh -c 'echo $$; exec sleep 1000' & wait";
        let start = json!({"command": script, "wait_ms": 20_000, "env": {"A": "b"}});
        let heard = host.calls("auto", args, &[("start_process", start)]).await;
        let pid = heard.members(0)["output"].as_str().expect("a pid").trim();
        let path = std::path::Path::new("/proc").join(pid);
        outpost_testkit::patience::seen("its end", || (!path.exists()).then_some(())).await;
    }
}

#[tokio::test]
async fn a_command_that_a_host_calls_off_is_ended() {
    let server = outpost().start().await;
    for args in [&[][..], &["--on", &server.urls()[0]]] {
        let (folder, mark) = (tempfile::tempdir().expect("a folder"), Mark::new());
        let pid = folder.path().join("pid");
        let long = format!("echo $$ > '{}'; echo ready; exec sleep 1000", pid.display());
        let long = json!(["run_command", {"command": long}]).to_string();
        // This one ends when the other has.
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
            .env(Mark::VARIABLE, mark.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let output = patience::soon("the client", child.wait_with_output()).await;
        let heard: Value = serde_json::from_slice(&output.expect("it ran").stdout).expect("JSON");
        assert_eq!(heard["called_off"], true, "{heard}");
        let words = heard["words"].as_str().expect("words");
        assert!(words.contains("\ngone"), "{heard}");
        mark.gone().await;
    }
}
