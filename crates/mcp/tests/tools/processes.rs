//! Processes that go on.

use std::time::Duration;

use outpost_mcp::serve::Bounds;
use serde_json::{Value, json};

use crate::bench::{Bench, Wanted, gone, in_each_place, in_each_place_with};

/// Reads until something was said.
async fn heard(bench: &Bench, id: &Value, words: &str) -> Value {
    let mut said = String::new();
    let mut cursor = json!(0);
    loop {
        let arguments = json!({"process_id": id, "cursor": cursor, "wait_ms": 20_000});
        let page = bench.call("read_output", arguments).await;
        said.push_str(page["output"].as_str().unwrap());
        cursor = page["cursor"].clone();
        if said.contains(words) {
            return cursor;
        }
        assert_eq!(page["running"], true, "it said {said:?} only");
    }
}

#[tokio::test]
async fn a_process_is_started_talked_to_and_ended() {
    in_each_place(async |bench| {
        let script = "echo ready; while read line; do echo \"got $line\"; done; echo over; exit 5";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        assert_eq!((&started["running"], &started["output"]), (&json!(true), &json!("ready\n")));

        let written = bench
            .call("write_input", json!({"process_id": id, "text": "one\n"}))
            .await;
        assert_eq!(written["cursor"], started["cursor"]);
        let read = json!({"process_id": id, "cursor": written["cursor"], "wait_ms": 20_000});
        let answer = bench.call("read_output", read.clone()).await;
        assert_eq!(answer["output"], "got one\n");
        let again = bench.call("read_output", read).await;
        assert_eq!(again["output"], "got one\n", "nothing is used up");

        let end = json!({"process_id": id, "text": "two\n", "end_input": true});
        bench.call("write_input", end).await;
        let last = bench
            .call(
                "read_output",
                json!({"process_id": id, "cursor": answer["cursor"], "wait_ms": 20_000, "wait_for": "exit"}),
            )
            .await;
        assert_eq!(last["output"], "got two\nover\n");
        assert_eq!((&last["running"], &last["exit_code"]), (&json!(false), &json!(5)));

        let too_late = json!({"process_id": id, "text": "three\n"});
        let said = bench.refused("write_input", too_late).await;
        assert!(said.contains("has ended with exit code 5"), "{said}");
        let stopped = bench.call("stop_process", json!({"process_id": id})).await;
        assert_eq!(stopped["was_running"], false);
    })
    .await;
}

#[tokio::test]
async fn it_never_waits_for_anybody_to_read() {
    in_each_place(async |bench| {
        let script = "seq 1 1000000; echo done > done; exec sleep 1000";
        let arguments = json!({"command": script, "wait_ms": 0});
        let started = bench.call("start_process", arguments).await;
        let path = bench.path("done");
        outpost_testkit::patience::seen("the end of its output", || path.exists().then_some(()))
            .await;
        let id = &started["process_id"];
        let stopped = bench.call("stop_process", json!({"process_id": id})).await;
        assert_eq!(stopped["was_running"], true);
        assert_eq!(stopped["exit_code"], 143, "it was asked, and did");
        let end = stopped["cursor"].as_u64().unwrap();
        let read = json!({"process_id": id, "cursor": end - 16});
        let last = bench.call("read_output", read).await;
        assert_eq!(last["output"], "\n999999\n1000000\n");
    })
    .await;
}

#[tokio::test]
async fn stopping_ends_the_whole_tree() {
    in_each_place(async |bench| {
        let script = "trap '' TERM HUP; sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 1; done' & wait";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        heard(bench, id, "\n").await;
        let pid = bench.call("read_output", json!({"process_id": id})).await;
        let stop = json!({"process_id": id, "grace_ms": 100});
        let stopped = bench.call("stop_process", stop).await;
        assert_eq!(stopped["exit_code"], 137);
        gone(pid["output"].as_str().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn a_terminal_has_a_size_and_keys() {
    in_each_place(async |bench| {
        let script = "trap 'stty size' WINCH; trap 'echo caught; exit 9' INT; stty size; while :; do sleep 0.1; done";
        let arguments =
            json!({"command": script, "tty": true, "rows": 30, "cols": 100, "wait_ms": 20_000});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        heard(bench, id, "30 100").await;
        let resize = json!({"process_id": id, "rows": 40, "cols": 120});
        bench.call("resize_terminal", resize).await;
        heard(bench, id, "40 120").await;
        let key = json!({"process_id": id, "text": "\u{3}"});
        bench.call("write_input", key).await;
        heard(bench, id, "caught").await;
        let wait = json!({"process_id": id, "wait_for": "exit", "wait_ms": 20_000});
        assert_eq!(bench.call("read_output", wait).await["exit_code"], 9);
    })
    .await;
}

#[tokio::test]
async fn signals_reach_it() {
    in_each_place(async |bench| {
        let script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        heard(bench, id, "ready").await;
        let (_, words) = bench
            .call_for_words("send_signal", json!({"process_id": id, "signal": "USR1"}))
            .await;
        assert!(words.contains("sent USR1"), "{words}");
        heard(bench, id, "usr1").await;
        for name in ["SIGWINCH", "winch", "Sigcont"] {
            let arguments = json!({"process_id": id, "signal": name});
            let (sent, _) = bench.call_for_words("send_signal", arguments).await;
            let signal = sent["signal"].as_str().unwrap();
            assert!(name.to_uppercase().ends_with(signal), "{name}: {signal}");
        }
        let kill = json!({"process_id": id, "signal": "KILL"});
        bench.call("send_signal", kill.clone()).await;
        let wait = json!({"process_id": id, "wait_for": "exit", "wait_ms": 20_000});
        assert_eq!(bench.call("read_output", wait).await["exit_code"], 137);
        let said = bench.refused("send_signal", kill).await;
        assert!(said.contains("has ended"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn one_stream_can_be_read_alone() {
    in_each_place(async |bench| {
        let script = "echo out; echo err >&2";
        let arguments = json!({"command": script, "wait_ms": 20_000});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        for (stream, expected) in [("stdout", "out\n"), ("stderr", "err\n")] {
            let read =
                json!({"process_id": id, "stream": stream, "wait_for": "exit", "wait_ms": 20_000});
            assert_eq!(bench.call("read_output", read).await["output"], expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_in_vain_has_an_end() {
    in_each_place(async |bench| {
        let arguments = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
        let started = bench.call("start_process", arguments).await;
        let id = &started["process_id"];
        for wait_for in ["output", "exit"] {
            let read = json!({"process_id": id, "wait_ms": 50, "wait_for": wait_for});
            let (page, words) = bench.call_for_words("read_output", read).await;
            assert_eq!(
                (&page["running"], &page["output"]),
                (&json!(true), &json!(""))
            );
            assert!(words.contains("running for"), "{words}");
        }
        let (listed, words) = bench.call_for_words("list_processes", json!({})).await;
        assert_eq!(listed["processes"][0]["command"], "sleep 1000");
        assert!(words.contains("sleep 1000"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn there_are_as_many_as_there_can_be_and_old_ones_are_forgotten() {
    let wanted = Wanted {
        bounds: Bounds {
            running: 2,
            ended: 1,
            ..Bounds::default()
        },
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        let start = || {
            bench.call(
                "start_process",
                json!({"argv": ["sleep", "1000"], "wait_ms": 0}),
            )
        };
        let (one, two) = (start().await, start().await);
        let said = bench
            .refused("start_process", json!({"argv": ["sleep", "1000"]}))
            .await;
        assert!(said.contains("2 processes are running"), "{said}");
        assert!(said.contains("stop_process"), "it says what to do: {said}");
        for process in [&one, &two] {
            let stop = json!({"process_id": process["process_id"], "grace_ms": 0});
            bench.call("stop_process", stop).await;
        }
        start().await;
        let read = |process: &Value| json!({"process_id": process["process_id"]});
        let said = bench.refused("read_output", read(&one)).await;
        assert!(
            said.contains("list_processes"),
            "it says what to do: {said}"
        );
        bench.call("read_output", read(&two)).await;
    })
    .await;
}

#[tokio::test]
async fn an_id_of_another_server_is_nobodys_here() {
    let (one, other) = (
        Bench::here(Wanted::default()).await,
        Bench::here(Wanted::default()).await,
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
        let said = other
            .refused("read_output", json!({"process_id": id}))
            .await;
        assert!(said.contains("there is no process"), "{said}");
    }
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn a_size_is_for_terminals_only() {
    let bench = Bench::here(Wanted::default()).await;
    let start = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
    let started = bench.call("start_process", start).await;
    let resize = json!({"process_id": started["process_id"], "rows": 1, "cols": 1});
    let said = bench.refused("resize_terminal", resize).await;
    assert!(said.contains("\"tty\": true"), "{said}");
    bench.end().await;
}

#[tokio::test]
async fn first_words_are_not_waited_for_for_ever() {
    let wanted = Wanted {
        bounds: Bounds {
            first_words: Duration::from_millis(50),
            ..Bounds::default()
        },
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        let start = json!({"argv": ["sleep", "1000"]});
        let started = bench.call("start_process", start).await;
        assert_eq!(started["running"], true);
    })
    .await;
}
