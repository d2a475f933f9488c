//! The built binary with a keeper above each process: which kind of tree there is, and that a server
//! that is killed leaves nothing.

use outpost_testkit::{Launch, Server, Vitals, patience, programs, sh};
use rustix::process::{Pid, Signal};
use serde_json::json;

fn outpost() -> Launch {
    Launch::of(env!("CARGO_BIN_EXE_outpost"))
}

/// The helpers of a server: the keepers, and their mother.
fn helpers(server: &Server) -> Vec<i32> {
    let mothers = server.vitals().children().into_iter();
    let mothers: Vec<_> = mothers
        .filter(|pid| name(*pid) == "keeper-mother")
        .collect();
    let keepers = mothers.iter().flat_map(|pid| Vitals::of(*pid).children());
    keepers.chain(mothers.iter().copied()).collect()
}

fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

async fn gone(pids: &[i32]) {
    for pid in pids {
        patience::seen(&format!("the end of {pid}"), || {
            let state = Vitals::of(*pid).state();
            matches!(state, None | Some('Z' | 'X')).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_kind_is_told() {
    for kind in ["keeper", "group"] {
        let server = outpost().args(&["--trees", kind]).start().await;
        let client = server.client().await;
        let info = client.call("environment/info", json!({})).await;
        assert_eq!(info["processTrees"], kind);
        assert!(server.stderr().contains(&format!("trees={kind}")));
        assert_eq!(helpers(&server).is_empty(), kind == "group");
    }
}

#[tokio::test]
async fn the_best_kind_knows_daemons() {
    let server = outpost().start().await;
    let client = server.client().await;
    let info = client.call("environment/info", json!({})).await;
    let kind = info["processTrees"].as_str().unwrap_or_default();
    assert!(["cgroup", "keeper"].contains(&kind), "{info}");
}

#[tokio::test]
async fn a_kind_that_cannot_be_had_is_one_line() {
    let arguments = ["serve", "--trees", "cgroup", "--listen", "stdio://"];
    let ended = outpost().run(&arguments).await;
    if ended.code == Some(0) {
        return; // It can be had here: what follows is for plain users.
    }
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    let line = "cannot keep process trees by cgroup here: ";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_nothing() {
    let mut server = outpost().args(&["--trees", "keeper"]).start().await;
    let client = server.client().await;
    for (id, script) in [
        ("deaf", programs::IGNORES_TERM),
        ("daemon", programs::DAEMON),
        ("left", programs::LEAVES_A_DAEMON),
        ("group", programs::LEAVES_ITS_GROUP),
    ] {
        for tty in [false, true] {
            let id = format!("{id}-{tty}");
            client.start(sh(&id, script).with("tty", tty)).await;
            client.sees(&id, "ready").await;
        }
    }
    client.exited("left-false").await;
    let helpers = helpers(&server);
    assert!(helpers.len() > 8, "{helpers:?}");
    server.signal(Signal::KILL);
    server.ended().await;
    server.mark().gone().await;
    gone(&helpers).await;
}

#[tokio::test]
async fn a_process_whose_keeper_is_killed_is_lost_and_the_server_goes_on() {
    let server = outpost().args(&["--trees", "keeper"]).start().await;
    let client = server.client().await;
    // Not before its start has been answered, or that is what would fail.
    let script = "echo ready; read go; kill -9 $PPID; exec sleep 1000";
    client.start(sh("lost", script).stdin()).await;
    client.write("lost", "go\n", "w").await;
    assert_eq!(client.closed("lost").await.code(), -1);
    server.mark().alive(1).await;
    assert_eq!(client.run(sh("next", "exit 3")).await.code(), 3);
}

#[tokio::test]
async fn the_end_of_the_server_takes_its_helpers_along() {
    let mut server = outpost().args(&["--trees", "keeper"]).start().await;
    let client = server.client().await;
    client.start(sh("daemon", programs::DAEMON)).await;
    client.sees("daemon", "ready").await;
    let helpers = helpers(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.code, Some(0));
    gone(&helpers).await;
}

#[tokio::test]
async fn a_signal_for_the_servers_group_is_not_for_its_helpers() {
    let mut server = outpost().args(&["--trees", "keeper"]).start().await;
    let client = server.client().await;
    // It says goodbye, which takes a moment, and its keeper has to live to tell of it.
    let script = "trap 'sleep 0.1; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    client.start(sh("polite", script)).await;
    client.sees("polite", "ready").await;
    let group = |pid| rustix::process::getpgid(Pid::from_raw(pid)).expect("it is alive");
    let own = group(server.pid());
    for helper in helpers(&server) {
        assert_ne!(group(helper), own);
    }
    let ending = client.terminate_with("polite", json!({"graceMs": 20_000}));
    assert!(ending.await);
    assert_eq!(client.exited("polite").await.code(), 7);
    server.signal(Signal::INT);
    assert_eq!(server.ended().await.code, Some(0));
}
