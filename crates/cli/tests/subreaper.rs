//! The built binary with a subreaper for each process: the reported tree kind, and the end of all
//! processes when the server is killed.

use outpost_testkit::{ProcStats, Server, ServerCommand, deadline, programs, sh};
use rustix::process::{Pid, Signal};
use serde_json::json;

fn outpost() -> ServerCommand {
    ServerCommand::new(env!("CARGO_BIN_EXE_outpost"))
}

/// Helper processes of a server: the subreapers and their factory.
fn helpers(server: &Server) -> Vec<i32> {
    let factories = server.stats().children().into_iter();
    let factories: Vec<_> = factories
        .filter(|pid| name(*pid) == "reaper-factory")
        .collect();
    let subreapers = factories
        .iter()
        .flat_map(|pid| ProcStats::of(*pid).children());
    subreapers.chain(factories.iter().copied()).collect()
}

fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

async fn gone(pids: &[i32]) {
    for pid in pids {
        deadline::poll_until(&format!("the end of {pid}"), || {
            let state = ProcStats::of(*pid).state();
            matches!(state, None | Some('Z' | 'X')).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn tree_kind_is_reported() {
    for kind in ["subreaper", "group"] {
        let server = outpost().args(&["--trees", kind]).start().await;
        let client = server.client().await;
        let info = client.call("environment/info", json!({})).await;
        assert_eq!(info["processTrees"], kind);
        let logged = format!("trees={kind}");
        deadline::poll_until("the kind in the log", || {
            server.stderr().contains(&logged).then_some(())
        })
        .await;
        assert_eq!(helpers(&server).is_empty(), kind == "group");
    }
}

#[tokio::test]
async fn default_tree_kind_covers_daemons() {
    let server = outpost().start().await;
    let client = server.client().await;
    let info = client.call("environment/info", json!({})).await;
    let kind = info["processTrees"].as_str().unwrap_or_default();
    assert!(["cgroup", "subreaper"].contains(&kind), "{info}");
}

#[tokio::test]
async fn unavailable_tree_kind_fails_with_one_line() {
    let arguments = ["serve", "--trees", "cgroup", "--listen", "stdio://"];
    let ended = outpost().run(&arguments).await;
    if ended.code == Some(0) {
        return; // Cgroups are available here; the rest needs a host without them.
    }
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    let line = "cannot use process trees of kind cgroup: ";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
}

#[tokio::test]
async fn killed_server_leaves_no_processes() {
    let mut server = outpost().args(&["--trees", "subreaper"]).start().await;
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
            client.wait_output(&id, "ready").await;
        }
    }
    client.exited("left-false").await;
    let helpers = helpers(&server);
    assert!(helpers.len() > 8, "{helpers:?}");
    server.signal(Signal::KILL);
    server.wait().await;
    server.tag().gone().await;
    gone(&helpers).await;
}

#[tokio::test]
async fn process_fails_if_its_subreaper_is_killed() {
    let server = outpost().args(&["--trees", "subreaper"]).start().await;
    let client = server.client().await;
    // After the response to the start, which would fail otherwise.
    let script = "echo ready; read go; kill -9 $PPID; exec sleep 1000";
    client.start(sh("lost", script).stdin()).await;
    client.write("lost", "go\n", "w").await;
    assert_eq!(client.closed("lost").await.code(), -1);
    server.tag().alive(1).await;
    assert_eq!(client.run(sh("next", "exit 3")).await.code(), 3);
}

#[tokio::test]
async fn helpers_end_with_the_server() {
    let mut server = outpost().args(&["--trees", "subreaper"]).start().await;
    let client = server.client().await;
    client.start(sh("daemon", programs::DAEMON)).await;
    client.wait_output("daemon", "ready").await;
    let helpers = helpers(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().await.code, Some(0));
    gone(&helpers).await;
}

#[tokio::test]
async fn helpers_ignore_signals_to_the_servers_group() {
    let mut server = outpost().args(&["--trees", "subreaper"]).start().await;
    let client = server.client().await;
    // The program needs a moment to exit, and its subreaper has to live to report it.
    let script = "trap 'sleep 0.1; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    client.start(sh("polite", script)).await;
    client.wait_output("polite", "ready").await;
    let group = |pid| rustix::process::getpgid(Pid::from_raw(pid)).expect("it is alive");
    let own = group(server.pid());
    for helper in helpers(&server) {
        assert_ne!(group(helper), own);
    }
    let ending = client.terminate_with("polite", json!({"graceMs": 20_000}));
    assert!(ending.await);
    assert_eq!(client.exited("polite").await.code(), 7);
    server.signal(Signal::INT);
    assert_eq!(server.wait().await.code, Some(0));
}
