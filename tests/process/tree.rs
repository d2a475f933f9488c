//! What is ended is ended with its whole tree.

use outpost_testkit::{Client, Server, programs, sh};

use crate::ready;

/// Starts a script that ends up with so many processes of its own, and ends it.
async fn ends_whole(server: &Server, client: &Client, id: &str, script: &str, count: usize) {
    for tty in [false, true] {
        let id = format!("{id}-{tty}");
        client.start(sh(&id, script).with("tty", tty)).await;
        client.sees(&id, "ready").await;
        server.mark().alive(1 + count).await;
        assert!(client.terminate(&id).await);
        assert_eq!(client.exited(&id).await.code(), 137, "{id}");
        // Only the server is left.
        server.mark().alive(1).await;
        client.closed(&id).await;
    }
}

#[tokio::test]
async fn children_in_the_group_die_with_it() {
    let (server, client) = ready().await;
    let script = "sleep 1000 & (sleep 1000 & sleep 1000) & echo ready; exec sleep 1000";
    // The subshell takes the place of its last command or waits for it.
    client.start(sh("count", script)).await;
    client.sees("count", "ready").await;
    outpost_testkit::patience::seen("four or five of them", || {
        (server.mark().living().len() >= 5).then_some(())
    })
    .await;
    client.terminate("count").await;
    server.mark().alive(1).await;
}

#[tokio::test]
async fn children_that_ignore_signals_die_with_it() {
    let (server, client) = ready().await;
    let script = "trap '' TERM HUP INT; sleep 1000 & echo ready; exec sleep 1000";
    ends_whole(&server, &client, "p", script, 2).await;
}

#[tokio::test]
async fn children_that_have_stopped_die_with_it() {
    let (server, client) = ready().await;
    let script = "sleep 1000 & kill -STOP $!; echo ready; exec sleep 1000";
    ends_whole(&server, &client, "p", script, 2).await;
}

#[tokio::test]
async fn children_in_sessions_of_their_own_die_with_it() {
    let (server, client) = ready().await;
    ends_whole(&server, &client, "p", programs::LEAVES_ITS_GROUP, 2).await;
}

#[tokio::test]
async fn daemons_die_with_it() {
    let (server, client) = ready().await;
    ends_whole(&server, &client, "p", programs::DAEMON, 2).await;
}

#[tokio::test]
async fn a_bomb_that_keeps_forking_dies() {
    let (server, client) = ready().await;
    // Each starts a successor in a session of its own and leaves.
    let script = "relay='sleep 0.01; setsid sh -c \"$0\" \"$0\" >/dev/null 2>&1 & exit 0'; \
                  sh -c \"$relay\" \"$relay\" & echo ready; exec sleep 1000";
    client.start(sh("p", script)).await;
    client.sees("p", "ready").await;
    outpost_testkit::patience::seen("the relay running", || {
        (server.mark().living().len() >= 3).then_some(())
    })
    .await;
    assert!(client.terminate("p").await);
    client.exited("p").await;
    server.mark().alive(1).await;
}
