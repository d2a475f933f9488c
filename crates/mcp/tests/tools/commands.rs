//! Commands that are run to their end.

use std::time::Duration;

use outpost_mcp::serve::Bounds;
use serde_json::json;

use crate::bench::{Bench, Wanted, gone, in_each_place, in_each_place_with, soon};

#[tokio::test]
async fn a_command_is_run_to_its_end() {
    in_each_place(async |bench| {
        let command = "echo out; echo err >&2; exit 3";
        let (members, words) = bench
            .call_for_words("run_command", json!({"command": command}))
            .await;
        assert_eq!(members["exit_code"], 3);
        assert_eq!(members["stdout"], "out\n");
        assert_eq!(members["stderr"], "err\n");
        assert_eq!(members["timed_out"], false);
        assert_eq!(members["truncated"], false);
        assert!(members["process_id"].is_null(), "nothing is left to read");
        let (state, output) = words.split_once('\n').unwrap();
        assert!(state.starts_with("exit code 3 after "), "{words}");
        assert_eq!(output, "--- stdout ---\nout\n--- stderr ---\nerr");
        let listed = bench.call("list_processes", json!({})).await;
        assert_eq!(listed["processes"], json!([]), "and it is forgotten");
    })
    .await;
}

#[tokio::test]
async fn it_has_the_surroundings_that_were_asked_for() {
    let wanted = Wanted {
        env: vec![("ALWAYS", "set")],
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        std::fs::create_dir(bench.path("sub")).unwrap();
        let script = "pwd; echo $ALWAYS $MINE; tr a-z A-Z; [[ a == a ]] && echo bash";
        let members = bench
            .call(
                "run_command",
                json!({"command": script, "cwd": "sub", "env": {"MINE": "too"}, "stdin": "typed\n"}),
            )
            .await;
        let sub = bench.path("sub").canonicalize().unwrap();
        let expected = format!("{}\nset too\nTYPED\nbash\n", sub.display());
        assert_eq!(members["stdout"], expected, "{members}");
        let argv = json!({"argv": ["printf", "%s|", "a b", "$HOME"]});
        let members = bench.call("run_command", argv).await;
        assert_eq!(members["stdout"], "a b|$HOME|");
    })
    .await;
}

#[tokio::test]
async fn without_stdin_there_is_none_to_wait_for() {
    in_each_place(async |bench| {
        let members = bench.call("run_command", json!({"argv": ["cat"]})).await;
        assert_eq!(
            (&members["exit_code"], &members["stdout"]),
            (&json!(0), &json!(""))
        );
    })
    .await;
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_it_started() {
    in_each_place(async |bench| {
        let script = "echo before; sleep 1000 & echo $!; wait";
        let arguments = json!({"command": script, "timeout_ms": 300});
        let (members, words) = bench.call_for_words("run_command", arguments).await;
        assert_eq!(members["timed_out"], true);
        assert_eq!(members["exit_code"], 124);
        assert!(words.starts_with("exit code 124 after"), "{words}");
        let stdout = members["stdout"].as_str().unwrap();
        let pid = stdout.strip_prefix("before\n").expect("what there was");
        gone(pid).await;
        assert!(words.contains("took too long and was ended"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn too_much_output_is_cut_and_the_rest_can_be_read() {
    in_each_place(async |bench| {
        let command = "seq 1 20000; seq 1 3 >&2";
        let arguments = json!({"command": command, "max_output_bytes": 1000});
        let members = bench.call("run_command", arguments).await;
        assert_eq!(members["truncated"], true);
        assert_eq!(members["stderr"], "1\n2\n3\n");
        let stdout = members["stdout"].as_str().unwrap();
        assert!(stdout.starts_with("1\n2\n3\n") && stdout.ends_with("\n20000\n"));
        let note = stdout.lines().find(|line| line.starts_with("[…")).unwrap();
        let (head, tail) = stdout.split_once(note).unwrap();
        let (_, call) = note.split_once("read_output ").unwrap();
        let call = call.strip_suffix(" …]").unwrap();
        let mut call: serde_json::Value = serde_json::from_str(call).unwrap();
        assert_eq!(call["process_id"], members["process_id"]);

        let mut whole = head.to_owned();
        let wanted: String = (1..=20000).map(|n| format!("{n}\n")).collect();
        while whole.len() < wanted.len() - (tail.len() - 1) {
            let page = bench.call("read_output", call.clone()).await;
            assert_eq!(page["missed_bytes"], 0);
            whole.push_str(page["output"].as_str().unwrap());
            call["cursor"] = page["cursor"].clone();
        }
        assert_eq!(whole, wanted, "all of it, and nothing twice");
    })
    .await;
}

#[tokio::test]
async fn a_flood_is_bounded_and_says_what_is_forgotten() {
    let bench = Bench::here(Wanted::default()).await;
    let command = "echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end";
    let (members, words) = bench
        .call_for_words("run_command", json!({"command": command}))
        .await;
    let stdout = members["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("begin\n") && stdout.ends_with("\nend\n"));
    assert!(stdout.len() < 25_000 && words.len() < 25_000);
    assert!(stdout.contains("50.0 MB left out"), "{}", &stdout[..200]);
    let id = &members["process_id"];
    let page = json!({"process_id": id, "cursor": 6, "max_output_bytes": 200_000});
    let page = bench.call("read_output", page).await;
    assert_eq!(page["more"], true);
    let page = json!({"process_id": id, "cursor": 1_000_000, "max_output_bytes": 100});
    let page = bench.call("read_output", page).await;
    assert!(page["missed_bytes"].as_u64().unwrap() > 40_000_000);
    bench.end().await;
}

#[tokio::test]
async fn streams_can_come_as_one() {
    in_each_place(async |bench| {
        let command = "echo one; echo two >&2";
        let arguments = json!({"command": command, "merge_stderr": true});
        let members = bench.call("run_command", arguments).await;
        let stdout = members["stdout"].as_str().unwrap();
        assert!(["one\ntwo\n", "two\none\n"].contains(&stdout), "{stdout}");
        assert_eq!(members["stderr"], "");
    })
    .await;
}

#[tokio::test]
async fn what_it_leaves_running_is_told_and_can_be_ended() {
    let wanted = Wanted {
        bounds: Bounds {
            drain: Duration::from_millis(200),
            ..Bounds::default()
        },
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        let command = "sleep 1000 & echo $!";
        let (members, words) = bench
            .call_for_words("run_command", json!({"command": command}))
            .await;
        assert_eq!(members["exit_code"], 0);
        assert_eq!(members["left_running"], true, "{words}");
        assert!(
            words.contains("stop_process {\"process_id\": \""),
            "{words}"
        );
        let id = &members["process_id"];
        let stopped = bench.call("stop_process", json!({"process_id": id})).await;
        assert_eq!(stopped["was_running"], false);
        gone(members["stdout"].as_str().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn calling_it_off_ends_it() {
    in_each_place(async |bench| {
        let fifo = bench.path("fifo");
        let script = "mkfifo fifo; sleep 1000 & echo $! > fifo; wait";
        let call = bench.begin("run_command", json!({"command": script})).await;
        let pid = soon("the pid", async {
            let made = || fifo.exists().then_some(());
            outpost_testkit::patience::seen("the pipe", made).await;
            let read = move || std::fs::read_to_string(fifo);
            tokio::task::spawn_blocking(read).await.unwrap().unwrap()
        })
        .await;
        call.cancel(None).await.expect("it is told");
        gone(&pid).await;
        soon("it to be forgotten", async {
            while bench.call("list_processes", json!({})).await["processes"] != json!([]) {}
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn who_wants_to_know_hears_how_far_it_is() {
    let wanted = Wanted {
        bounds: Bounds {
            progress: Duration::from_millis(50),
            ..Bounds::default()
        },
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        let script = "echo working hard; mkfifo fifo; cat fifo";
        let call = bench.begin("run_command", json!({"command": script})).await;
        let token = call.progress_token.clone();
        let mut progress = bench.progress.lock().await;
        let mut last = 0.0;
        loop {
            let note = soon("progress", progress.recv()).await.unwrap();
            assert_eq!(note.progress_token, token);
            assert!(note.progress > last, "it grows");
            last = note.progress;
            assert_eq!(note.total, Some(120.0));
            let words = note.message.unwrap();
            if words.contains("working hard") {
                assert!(words.starts_with("running for "), "{words}");
                break;
            }
        }
        std::fs::write(bench.path("fifo"), "").unwrap();
        soon("its end", call.await_response()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_can_not_be_started_is_the_tools_failure() {
    in_each_place(async |bench| {
        for (arguments, words) in [
            (json!({"argv": ["/nope/nope"]}), "No such file or directory"),
            (
                json!({"command": "true", "cwd": "nope"}),
                "No such file or directory",
            ),
            (json!({}), "give either `command`"),
            (json!({"command": "a", "argv": ["b"]}), "not both"),
            (json!({"argv": []}), "`argv` is empty"),
        ] {
            let said = bench.refused("run_command", arguments).await;
            assert!(said.contains(words), "{said}");
        }
        // A shell that doesn't find something has been started all the same.
        let members = bench
            .call("run_command", json!({"command": "nope-nope"}))
            .await;
        assert_eq!(members["exit_code"], 127);
    })
    .await;
}

#[tokio::test]
async fn what_has_exited_in_time_has_not_timed_out() {
    in_each_place(async |bench| {
        // What holds its output is waited for longer than it may run itself.
        let run = json!({"command": "sleep 1000 & echo said", "timeout_ms": 700});
        let (members, words) = bench.call_for_words("run_command", run).await;
        assert_eq!(members["timed_out"], false, "{words}");
        assert_eq!(
            (&members["exit_code"], &members["stdout"]),
            (&json!(0), &json!("said\n"))
        );
        assert_eq!(members["left_running"], true, "{words}");
        let stop = json!({"process_id": members["process_id"]});
        bench.call("stop_process", stop).await;
    })
    .await;
}
