//! Tests `process/list`.

use std::time::{SystemTime, UNIX_EPOCH};

use outpost_testkit::{ProcStats, Start, file_uri, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

#[tokio::test]
async fn entry_describes_its_process() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        assert_eq!(
            client.call("process/list", json!({})).await,
            json!({"processes": []})
        );
        let before = now_ms();
        let argv = ["/bin/sh", "-c", "echo hello; read x; echo bye >&2; exit 5"];
        let start = Start::new("p", &argv).stdin().cwd(server.dir());
        client.start(start).await;
        client.wait_output("p", "hello").await;
        let entry = client.listed("p").await.expect("an entry");
        let (pid, started) = (entry["pid"].clone(), entry["startedAtMs"].clone());
        let expected = json!({
            "processId": "p", "pid": pid, "argv": argv, "cwd": file_uri(server.dir()),
            "tty": false, "startedAtMs": started, "state": "running", "exitCode": null,
            "nextSeq": 2, "bytesOut": 6,
        });
        assert_eq!(entry, expected);
        let started = started.as_u64().expect("a time");
        assert!((before..=now_ms()).contains(&started), "{started}");
        let pid = i32::try_from(pid.as_i64().expect("a pid")).expect("a pid");
        assert!(ProcStats::of(pid).state().is_some());
        assert!(server.tag().living().contains(&pid));

        client.write("p", "\n", "w").await;
        client.closed("p").await;
        let mut entry = client.listed("p").await.expect("an entry");
        assert!(entry["usage"].take().is_object());
        let mut expected = expected;
        expected["endedBy"] = json!("exit");
        expected["usage"] = json!(null);
        expected["state"] = json!("closed");
        expected["exitCode"] = json!(5);
        expected["nextSeq"] = json!(5);
        expected["bytesOut"] = json!(10);
        assert_eq!(entry, expected);
    })
    .await;
}

#[tokio::test]
async fn states_are_running_exited_and_closed() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "sleep 1000 & read x; exit 0").tty())
        .await;
    client
        .start(sh("q", "sleep 1000 & echo ready; exit 6"))
        .await;
    let state = async |id: &str| client.listed(id).await.expect("an entry")["state"].clone();
    assert_eq!(state("p").await, "running");
    client.exited("q").await;
    assert_eq!(state("q").await, "exited");
    let entry = client.listed("q").await.expect("an entry");
    assert_eq!(
        (&entry["exitCode"], &entry["tty"]),
        (&json!(6), &json!(false))
    );
    client.terminate_with("q", json!({"tree": true})).await;
    client.closed("q").await;
    assert_eq!(state("q").await, "closed");
    assert_eq!(client.listed("p").await.expect("an entry")["tty"], true);
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn all_processes_of_the_session_are_listed() {
    let (_server, client) = ready().await;
    for n in 0..20 {
        client.run(Start::new(&format!("p{n:02}"), &["true"])).await;
    }
    let list = client.call("process/list", json!({})).await;
    let entries = list["processes"].as_array().expect("a list");
    let mut ids: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry["processId"].as_str())
        .collect();
    ids.sort_unstable();
    let expected: Vec<_> = (0..20).map(|n| format!("p{n:02}")).collect();
    assert_eq!(ids, expected);
    let pids: Vec<_> = entries.iter().map(|entry| &entry["pid"]).collect();
    assert!(pids.iter().all(|pid| Value::is_u64(pid)));
}

#[tokio::test]
async fn entries_are_in_order_of_reservation() {
    let (_server, client) = ready().await;
    let ids: Vec<_> = (0..40).rev().map(|n| format!("p{n:02}")).collect();
    let mut starts = Vec::new();
    for id in &ids {
        starts.push(client.request_start(Start::new(id, &["true"])).await);
    }
    for start in starts {
        assert!(client.response(start).await.is_ok());
    }
    let list = client.call("process/list", json!({})).await;
    let entries = list["processes"].as_array().expect("a list");
    let listed: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry["processId"].as_str())
        .collect();
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn start_in_flight_is_listed() {
    let (_server, client) = ready().await;
    for n in 0..20 {
        let id = format!("p{n}");
        let start = client.request_start(sh(&id, "read x").stdin()).await;
        let list = client.request("process/list", json!({})).await;
        let list = client.response(list).await.expect("a list");
        let entries = list["processes"].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["processId"] == json!(id));
        let entry = entry.unwrap_or_else(|| panic!("{id} isn't listed: {list}"));
        assert!(
            matches!(entry["state"].as_str(), Some("starting" | "running")),
            "{entry}"
        );
        assert!(client.response(start).await.is_ok());
        client.terminate_and_wait(&id).await;
    }
}
