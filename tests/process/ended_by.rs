//! Tests `endedBy` and `usage` of an exit that no limit caused.

use outpost_testkit::{Client, sh};
use serde_json::{Value, json};

use crate::{ready, ready_with};

/// Returns the exit as `process/exited`, `process/read` and `process/list` tell it, which is the same.
pub(crate) async fn exit(client: &Client, id: &str) -> Value {
    client.closed(id).await;
    let is_exit = |message: &Value| {
        message["method"] == "process/exited" && message["params"]["processId"] == id
    };
    let received = client.received();
    let exited = received.iter().find(|message| is_exit(message));
    let exited = &exited.expect("it has exited")["params"];
    let read = client.read(id, json!({})).await;
    let listed = client.listed(id).await.expect("it is listed");
    for member in ["endedBy", "usage", "exitCode"] {
        assert_eq!(exited[member], read[member], "{member}");
        assert_eq!(exited[member], listed[member], "{member}");
    }
    json!({"code": exited["exitCode"], "endedBy": exited["endedBy"], "usage": exited["usage"]})
}

#[tokio::test]
async fn every_cause_is_reported() {
    for kind in ["auto", "subreaper", "group"] {
        let (_server, client) = ready_with(&["--trees", kind]).await;
        client.start(sh("exit", "exit 137")).await;
        client.start(sh("signal", "kill -TERM $$")).await;
        let sleeps = |id| sh(id, "echo ready; exec sleep 1000");
        client.start(sleeps("timeout").with("timeoutMs", 200)).await;
        let zero_at_end = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done";
        client.start(sh("terminated", zero_at_end)).await;
        client.wait_output("terminated", "ready").await;
        let grace = json!({"graceMs": 60_000});
        client.terminate_with("terminated", grace).await;
        client.start(sleeps("killed")).await;
        client.wait_output("killed", "ready").await;
        client.signal("killed", "kill").await;
        for (id, code, cause) in [
            ("exit", 137, "exit"),
            ("signal", 143, "signal"),
            ("timeout", 124, "timeout"),
            ("terminated", 0, "terminated"),
            ("killed", 137, "signal"),
        ] {
            let exit = exit(&client, id).await;
            let told = (&exit["code"], &exit["endedBy"]);
            assert_eq!(told, (&json!(code), &json!(cause)), "{kind} {id}");
            let usage = &exit["usage"];
            let rss = usage["maxRssBytes"].as_u64().unwrap_or_default();
            assert!((100_000..1 << 30).contains(&rss), "{kind} {id} {usage}");
        }
    }
}

#[tokio::test]
async fn running_process_has_no_end() {
    let (_server, client) = ready().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    let read = client.read("p", json!({})).await;
    let listed = client.listed("p").await.expect("it is listed");
    for told in [read, listed] {
        assert_eq!((told.get("endedBy"), told.get("usage")), (None, None));
    }
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn usage_includes_children_that_were_waited_for() {
    for kind in ["auto", "subreaper"] {
        let (_server, client) = ready_with(&["--trees", kind]).await;
        // The child uses CPU until the kernel ends it.
        let script = "sh -c 'ulimit -t 1; while :; do :; done'; exit 0";
        client.start(sh("p", script)).await;
        let exit = exit(&client, "p").await;
        let cpu = exit["usage"]["cpuMs"].as_u64().expect("a number");
        assert!((500..60_000).contains(&cpu), "{kind} {exit}");
    }
}

#[tokio::test]
async fn killed_subreaper_loses_the_exit() {
    let (server, client) = ready_with(&["--trees", "subreaper"]).await;
    let script = "echo $PPID; exec sleep 1000";
    client.start(sh("p", script)).await;
    let log = client.wait_output("p", "\n").await;
    let reaper: i32 = log.text().trim().parse().expect("a pid");
    let reaper = rustix::process::Pid::from_raw(reaper).expect("not zero");
    rustix::process::kill_process(reaper, rustix::process::Signal::KILL).expect("it is ours");
    let exit = exit(&client, "p").await;
    assert_eq!(exit, json!({"code": -1, "endedBy": "lost", "usage": null}));
    server.tag().alive(1).await;
}
