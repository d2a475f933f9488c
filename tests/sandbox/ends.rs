//! How a confined process ends, with all it has started.

use outpost_testkit::programs;
use serde_json::json;

use super::Site;
use crate::{outpost, ready};

#[tokio::test]
async fn a_signal_reaches_the_program_and_its_trap() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "trap 'echo caught; exit 9' INT TERM HUP QUIT USR1; \
                  echo ready; while :; do sleep 0.1; done";
    for signal in ["interrupt", "terminate", "hangup", "quit", "user1"] {
        client.start(site.script(signal, script)).await;
        client.sees(signal, "ready").await;
        client.signal(signal, signal).await;
        let story = client.closed(signal).await;
        assert_eq!(story.code(), 9, "{signal}");
        assert!(story.stdout().contains("caught"), "{signal}");
    }
}

#[tokio::test]
async fn who_has_a_farewell_may_say_it() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "trap 'echo farewell; exit 4' TERM; echo ready; while :; do sleep 0.1; done";
    client.start(site.script("p", script)).await;
    client.sees("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": 20_000})).await;
    let story = client.closed("p").await;
    assert_eq!(story.code(), 4);
    assert!(story.stdout().contains("farewell"));
}

#[tokio::test]
async fn nothing_is_left_of_those_that_would_stay() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        for (id, script) in [
            ("ignores", programs::IGNORES_TERM),
            ("daemon", programs::DAEMON),
            ("group", programs::LEAVES_ITS_GROUP),
        ] {
            client.start(site.script(id, script)).await;
            client.sees(id, "ready").await;
            client.terminate(id).await;
            client.closed(id).await;
        }
        server.mark().alive(1).await;
    }
}

#[tokio::test]
async fn what_it_leaves_running_ends_with_it() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        for (id, script) in [
            ("leaves", programs::FORKS_AND_LEAVES),
            ("leaves a daemon", programs::LEAVES_A_DAEMON),
            ("holds", programs::HOLDS_THE_PIPE),
        ] {
            let story = client.run(site.script(id, script)).await;
            assert_eq!(story.code(), 0, "{trees} {id}");
        }
        server.mark().alive(1).await;
        let left = std::fs::read_dir(site.workspace()).expect("a folder");
        assert_eq!(left.count(), 0, "{trees}");
    }
}

/// It has 20 ms, of which a busy machine may need more, so one of many is enough.
#[tokio::test]
async fn what_comes_just_after_the_exit_is_heard_and_counts() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let mut heard = 0;
    for round in 0..20 {
        let id = round.to_string();
        let script = "(sleep 0.001; echo permission denied) & exit 1";
        let story = client.run(site.script(&id, script)).await;
        assert_eq!(story.code(), 1);
        let came = story.stdout() == "permission denied\n";
        assert_eq!(story.denied(), came, "round {round}");
        heard += usize::from(came);
    }
    assert!(heard > 0);
}
