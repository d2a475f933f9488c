//! How a confined process ends, with all it has started.

use outpost_testkit::{patience, programs};
use serde_json::json;

use super::Site;
use crate::{outpost, ready, ready_with};

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
async fn what_it_leaves_running_goes_on_until_its_session_ends() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        for (id, script) in [
            ("leaves", programs::FORKS_AND_LEAVES),
            ("leaves a daemon", programs::LEAVES_A_DAEMON),
            ("holds", programs::HOLDS_THE_PIPE),
        ] {
            client.start(site.script(id, script)).await;
            assert_eq!(client.exited(id).await.code(), 0, "{trees} {id}");
        }
        server.mark().alive(4).await;
        client.call("session/close", json!({})).await;
        server.mark().alive(1).await;
        let left = || {
            std::fs::read_dir(site.workspace())
                .expect("a folder")
                .count()
        };
        patience::seen("nothing left", || (left() == 0).then_some(())).await;
    }
}

#[tokio::test]
async fn who_has_left_somebody_is_forgotten_like_all_others() {
    let (_server, client) = ready_with(&["--closed-retention", "100ms"]).await;
    let site = Site::new();
    client
        .start(site.script("p", programs::FORKS_AND_LEAVES))
        .await;
    client.closed("p").await;
    let forgotten = async { while client.listed("p").await.is_some() {} };
    patience::soon("it is forgotten", forgotten).await;
}

#[tokio::test]
async fn what_comes_late_is_heard() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "(read x; echo late) <go & echo first; exit 3";
    let go = site.workspace().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.expect("it runs").success());
    client.start(site.script("p", script)).await;
    assert_eq!(client.exited("p").await.code(), 3);
    std::fs::write(&go, "now\n").expect("somebody reads it");
    let story = client.closed("p").await;
    assert_eq!(story.stdout(), "first\nlate\n");
}

#[tokio::test]
async fn walls_stand_around_what_is_left_running() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "(read x; mkdir .git; mkdir .git/x; echo tried) <go & exit 0";
    let go = site.workspace().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.expect("it runs").success());
    client.start(site.script("p", script)).await;
    assert_eq!(client.exited("p").await.code(), 0);
    std::fs::write(&go, "now\n").expect("somebody reads it");
    let story = client.closed("p").await;
    assert_eq!(story.stdout(), "tried\n");
    let refused = story.stderr();
    let words = ["File exists", "Read-only file system"];
    assert!(
        words.iter().all(|words| refused.contains(words)),
        "{refused}"
    );
}
