//! Tests that a process ends with its whole tree, with every kind of process tree.

use outpost_testkit::{Client, Server, deadline, programs, sh};

use crate::ready_with;

/// The host's best kind of process tree, and the one that every host has.
const KINDS: [&str; 2] = ["auto", "subreaper"];

/// Starts a script that ends up with `count` processes, and terminates it.
async fn check_whole_tree_ends(script: &str, count: usize) {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        for tty in [false, true] {
            let id = format!("{kind}-{tty}");
            client.start(sh(&id, script).with("tty", tty)).await;
            client.wait_output(&id, "ready").await;
            server.tag().alive(1 + count).await;
            terminate_and_check(&server, &client, &id).await;
        }
    }
}

/// Terminates a process and checks that only the server is left.
async fn terminate_and_check(server: &Server, client: &Client, id: &str) {
    assert!(client.terminate(id).await);
    assert_eq!(client.exited(id).await.code(), 137, "{id}");
    server.tag().alive(1).await;
    client.closed(id).await;
}

#[tokio::test]
async fn children_in_the_group_are_killed() {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        let script = "sleep 1000 & (sleep 1000 & sleep 1000) & echo ready; exec sleep 1000";
        client.start(sh("p", script)).await;
        client.wait_output("p", "ready").await;
        // The subshell execs its last command or waits for it.
        deadline::poll_until("five processes", || {
            (server.tag().living().len() >= 5).then_some(())
        })
        .await;
        terminate_and_check(&server, &client, "p").await;
    }
}

#[tokio::test]
async fn children_ignoring_signals_are_killed() {
    let script = "trap '' TERM HUP INT; sleep 1000 & echo ready; exec sleep 1000";
    check_whole_tree_ends(script, 2).await;
}

#[tokio::test]
async fn stopped_children_are_killed() {
    let script = "sleep 1000 & kill -STOP $!; echo ready; exec sleep 1000";
    check_whole_tree_ends(script, 2).await;
}

#[tokio::test]
async fn children_in_other_sessions_are_killed() {
    check_whole_tree_ends(programs::LEAVES_ITS_GROUP, 2).await;
}

#[tokio::test]
async fn daemons_are_killed() {
    check_whole_tree_ends(programs::DAEMON, 2).await;
}

#[tokio::test]
async fn fork_bomb_is_killed() {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        // Each one starts a successor in a new session and exits.
        let script = "relay='sleep 0.01; setsid sh -c \"$0\" \"$0\" >/dev/null 2>&1 & exit 0'; \
                      sh -c \"$relay\" \"$relay\" & echo ready; exec sleep 1000";
        client.start(sh("p", script)).await;
        client.wait_output("p", "ready").await;
        deadline::poll_until("the relay running", || {
            (server.tag().living().len() >= 3).then_some(())
        })
        .await;
        terminate_and_check(&server, &client, "p").await;
    }
}
