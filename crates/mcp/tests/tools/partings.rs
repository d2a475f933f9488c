//! The end of a conversation, and of the place it is about.

use std::time::Duration;

use outpost_mcp::serve::Bounds;
use serde_json::json;

use crate::bench::{Bench, Wanted, gone, in_each_place_with, soon};

fn hasty() -> Wanted {
    Wanted {
        bounds: Bounds {
            farewell: Duration::from_millis(100),
            ..Bounds::default()
        },
        ..Wanted::default()
    }
}

#[tokio::test]
async fn whatever_runs_ends_with_the_conversation() {
    for bench in [Bench::here(hasty()).await, Bench::there(hasty()).await] {
        let script = "echo $$; exec sleep 1000";
        let start = json!({"command": script, "wait_ms": 20_000});
        let started = bench.call("start_process", start).await;
        let pid = started["output"].as_str().unwrap().to_owned();
        bench.end().await;
        gone(&pid).await;
    }
}

#[tokio::test]
async fn a_call_under_way_does_not_hold_up_the_end() {
    for bench in [Bench::here(hasty()).await, Bench::there(hasty()).await] {
        let run = json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"});
        let _call = bench.begin("run_command", run).await;
        let path = bench.path("pid");
        let pid =
            outpost_testkit::patience::seen("the pid", || std::fs::read_to_string(&path).ok());
        let pid = pid.await;
        bench.end().await;
        gone(&pid).await;
    }
}

#[tokio::test]
async fn who_is_told_to_leave_leaves() {
    let bench = Bench::here(hasty()).await;
    let run = json!({"command": "echo > here; exec sleep 1000"});
    let _call = bench.begin("run_command", run).await;
    let path = bench.path("here");
    outpost_testkit::patience::seen("the command", || path.exists().then_some(())).await;
    bench.until.cancel();
    let Bench {
        speaking,
        place,
        workbench,
        ..
    } = bench;
    soon("the end", speaking).await.expect("nobody panics");
    place.close().await.expect("everything has ended");
    workbench.close().await;
}

#[tokio::test]
async fn a_lost_place_is_told_at_once() {
    let bench = Bench::there(hasty()).await;
    let start = json!({"argv": ["sleep", "1000"], "wait_ms": 0});
    let started = bench.call("start_process", start.clone()).await;
    let run = bench
        .begin("run_command", json!({"command": "sleep 1000"}))
        .await;
    // That it runs isn't enough: the answer to its start could be lost as well.
    soon("both to be known", async {
        loop {
            let known = bench.call("list_processes", json!({})).await;
            if known["processes"].as_array().unwrap().len() == 2 {
                return;
            }
        }
    })
    .await;
    bench.line.as_ref().expect("a line").lose();
    let rmcp::model::ServerResult::CallToolResult(ran) = soon("an answer", run.await_response())
        .await
        .expect("an answer")
    else {
        panic!("no result of a tool")
    };
    let lost = &ran.structured_content.expect("members")["lost"];
    assert!(lost.as_str().unwrap().contains("disconnected"), "{lost}");
    let read = json!({"process_id": started["process_id"], "wait_for": "exit", "wait_ms": 20_000});
    let page = bench.call("read_output", read).await;
    assert!(
        page["lost"].as_str().unwrap().contains("disconnected"),
        "{page}"
    );
    let said = bench.refused("start_process", start).await;
    assert!(said.contains("disconnected"), "{said}");
    bench.end().await;
}

#[tokio::test]
async fn calls_are_bounded() {
    let wanted = Wanted {
        bounds: Bounds {
            calls: 1,
            ..Bounds::default()
        },
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        let call = bench.begin(
            "run_command",
            json!({"command": "echo > here; read x < end || sleep 1000"}),
        );
        let made = std::process::Command::new("mkfifo")
            .arg(bench.path("end"))
            .status();
        assert!(made.unwrap().success());
        let call = call.await;
        let path = bench.path("here");
        outpost_testkit::patience::seen("the command", || path.exists().then_some(())).await;
        let said = bench.refused("list_processes", json!({})).await;
        assert!(said.contains("1 calls are under way"), "{said}");
        std::fs::write(bench.path("end"), "x\n").unwrap();
        soon("its end", call.await_response()).await.unwrap();
        bench.call("list_processes", json!({})).await;
    })
    .await;
}
