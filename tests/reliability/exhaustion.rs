//! Tests that when a resource runs out, only the request that needs it fails, with the system's
//! message.

use outpost_testkit::{Client, ProcStats, Server, Start, sh};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, getuid, prlimit};
use serde_json::json;

use crate::{ready, ready_with};

/// Changes a resource limit of the running server and returns the previous one.
fn limit(server: &Server, resource: Resource, current: Option<u64>) -> Rlimit {
    let pid = Pid::from_raw(server.pid());
    let maximum = getrlimit(resource).maximum;
    let new = Rlimit { current, maximum };
    prlimit(pid, resource, new).unwrap_or_else(|error| panic!("no limit can be set: {error}"))
}

#[tokio::test]
async fn missing_descriptors_fail_only_that_start() {
    let (server, client) = ready().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    let used = server.stats().open_files() as u64;
    let before = limit(&server, Resource::Nofile, Some(used + 1));
    for tty in [false, true] {
        let start = sh("p", "echo hi");
        let rejected = client
            .start_fails(if tty { start.tty() } else { start })
            .await;
        assert_eq!(rejected.code, -32603);
        assert!(
            rejected
                .message
                .contains("Too many open files (os error 24)"),
            "{rejected:?}"
        );
    }
    // Other processes aren't affected, and the reservation was released.
    client.write("cat", "still here\n", "w").await;
    client.wait_output("cat", "still here").await;
    // Resources may be held ready for the next child, in any free numbers below the limit, but none of
    // the failed ones leak.
    let held = server.stats().open_files();
    for number in 0..20 {
        client
            .start_fails(sh(&format!("more{number}"), "echo hi"))
            .await;
    }
    assert!(server.stats().open_files() <= held + 2);
    limit(&server, Resource::Nofile, before.current);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.terminate_and_wait("cat").await;
}

#[tokio::test]
async fn missing_descriptors_delay_only_that_connection() {
    let (server, client) = ready().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    let used = server.stats().open_files() as u64;
    let before = limit(&server, Resource::Nofile, Some(used));
    let url = server.urls()[0].clone();
    let waiting = server.connect_to(&url);
    let working = async {
        for number in 0..20 {
            client
                .write("cat", format!("line {number}\n"), &format!("w{number}"))
                .await;
            client.wait_output("cat", &format!("line {number}\n")).await;
        }
        limit(&server, Resource::Nofile, before.current);
    };
    let (late, ()) = tokio::join!(waiting, working);
    late.handshake().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.terminate_and_wait("cat").await;
}

/// Starts a process that ignores SIGTERM, and one in another session whose parent has exited.
async fn start_with_daemon(client: &Client, id: &str) {
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo ready; sleep 1000' & sleep 1000";
    client.start(sh(id, script)).await;
    client.wait_output(id, "ready").await;
}

#[tokio::test]
async fn missing_descriptors_do_not_keep_trees_alive() {
    for trees in ["auto", "subreaper"] {
        let (server, client) = ready_with(&["--trees", trees]).await;
        let without_trees = server.tag().living().len();
        start_with_daemon(&client, "terminated").await;
        start_with_daemon(&client, "asked").await;
        start_with_daemon(&client, "closed").await;
        // No descriptor is free below this limit. Zero would make `poll` fail.
        let before = limit(&server, Resource::Nofile, Some(3));
        client.terminate("terminated").await;
        client
            .terminate_with("asked", json!({"graceMs": 100}))
            .await;
        client.closed("terminated").await;
        client.closed("asked").await;
        let closed = client.call("session/close", json!({})).await;
        assert_eq!(closed, json!({}), "{trees}");
        let living = server.tag().living();
        limit(&server, Resource::Nofile, before.current);
        // Idle subreapers stay.
        let programs = living.iter().filter(|pid| {
            let name = ProcStats::of(**pid).name().unwrap_or_default();
            name == "sh" || name == "sleep"
        });
        assert_eq!(programs.count(), 0, "{trees}: {living:?}");
        assert!(living.len() <= without_trees + 3, "{trees}: {living:?}");
    }
}

#[tokio::test]
async fn missing_processes_fail_the_start_with_the_systems_message() {
    // Without subreapers, which have their own limits.
    let (server, client) = ready_with(&["--trees", "group"]).await;
    client.run(sh("first", "echo hi")).await;
    let before = limit(&server, Resource::Nproc, Some(1));
    if getuid().is_root() {
        // The limit doesn't apply to root.
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    } else {
        let rejected = client.start_fails(sh("p", "echo hi")).await;
        assert_eq!(rejected.code, -32603);
        assert!(
            rejected
                .message
                .contains("Resource temporarily unavailable (os error 11)"),
            "{rejected:?}"
        );
    }
    limit(&server, Resource::Nproc, before.current);
    assert_eq!(client.run(sh("again", "echo hi")).await.text(), "hi\n");
}

#[tokio::test]
async fn too_long_arguments_fail_with_the_systems_message() {
    let (_server, client) = ready().await;
    let long = "x".repeat(3 << 20);
    let rejected = client.start_fails(Start::new("p", &["echo", &long])).await;
    assert_eq!(rejected.code, -32603);
    assert!(
        rejected
            .message
            .contains("Argument list too long (os error 7)"),
        "{}",
        &rejected.message[..200]
    );
    assert!(
        rejected.message.len() < 1000,
        "the message lists no arguments"
    );
}

#[tokio::test]
async fn full_disk_costs_only_log_lines() {
    let server = crate::outpost()
        .args(&["--log-level", "trace"])
        .after_shell("exec 2>/dev/full")
        .start()
        .await;
    let client = server.client().await;
    for number in 0..20 {
        let id = format!("p{number}");
        assert_eq!(client.run(sh(&id, "echo hi")).await.text(), "hi\n");
    }
}

#[tokio::test]
async fn full_disk_for_the_url_is_one_line_and_exit_code_1() {
    let output = crate::outpost()
        .after_shell("exec >/dev/full")
        .run(&["serve"])
        .await;
    assert_eq!(output.code, Some(1));
    let printed = "outpost: cannot print the URLs: No space left on device (os error 28)\n";
    assert!(output.stderr.ends_with(printed), "{}", output.stderr);
}
