//! What is ended is ended with its whole tree, however the server keeps trees together.

use outpost_testkit::{Client, Server, patience, programs, sh};

use crate::ready_with;

/// What the host has best, and what there is everywhere.
const KINDS: [&str; 2] = ["auto", "keeper"];

/// Starts a script that ends up with so many processes of its own, and ends it.
async fn ends_whole(script: &str, count: usize) {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        for tty in [false, true] {
            let id = format!("{kind}-{tty}");
            client.start(sh(&id, script).with("tty", tty)).await;
            client.sees(&id, "ready").await;
            server.mark().alive(1 + count).await;
            ends(&server, &client, &id).await;
        }
    }
}

/// Ends a process; only the server is left then.
async fn ends(server: &Server, client: &Client, id: &str) {
    assert!(client.terminate(id).await);
    assert_eq!(client.exited(id).await.code(), 137, "{id}");
    server.mark().alive(1).await;
    client.closed(id).await;
}

#[tokio::test]
async fn children_in_the_group_die_with_it() {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        let script = "sleep 1000 & (sleep 1000 & sleep 1000) & echo ready; exec sleep 1000";
        client.start(sh("p", script)).await;
        client.sees("p", "ready").await;
        // The subshell takes the place of its last command or waits for it.
        patience::seen("four or five of them", || {
            (server.mark().living().len() >= 5).then_some(())
        })
        .await;
        ends(&server, &client, "p").await;
    }
}

#[tokio::test]
async fn children_that_ignore_signals_die_with_it() {
    let script = "trap '' TERM HUP INT; sleep 1000 & echo ready; exec sleep 1000";
    ends_whole(script, 2).await;
}

#[tokio::test]
async fn children_that_have_stopped_die_with_it() {
    let script = "sleep 1000 & kill -STOP $!; echo ready; exec sleep 1000";
    ends_whole(script, 2).await;
}

#[tokio::test]
async fn children_in_sessions_of_their_own_die_with_it() {
    ends_whole(programs::LEAVES_ITS_GROUP, 2).await;
}

#[tokio::test]
async fn daemons_die_with_it() {
    ends_whole(programs::DAEMON, 2).await;
}

#[tokio::test]
async fn a_bomb_that_keeps_forking_dies() {
    for kind in KINDS {
        let (server, client) = ready_with(&["--trees", kind]).await;
        // Each starts a successor in a session of its own and leaves.
        let script = "relay='sleep 0.01; setsid sh -c \"$0\" \"$0\" >/dev/null 2>&1 & exit 0'; \
                      sh -c \"$relay\" \"$relay\" & echo ready; exec sleep 1000";
        client.start(sh("p", script)).await;
        client.sees("p", "ready").await;
        patience::seen("the relay running", || {
            (server.mark().living().len() >= 3).then_some(())
        })
        .await;
        ends(&server, &client, "p").await;
    }
}
