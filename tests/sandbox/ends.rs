//! How a confined process ends, with all it has started.

use outpost_testkit::{patience, programs, sh};
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

/// As of a free one. What keeps paths absent for them stays as long as they do.
#[tokio::test]
async fn a_natural_exit_kills_nothing_inside_either() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        let held = || site.workspace().join(".git").exists();
        for (id, script) in [
            ("leaves", programs::FORKS_AND_LEAVES),
            ("leaves a daemon", programs::LEAVES_A_DAEMON),
        ] {
            let story = client.run(site.script(id, script)).await;
            assert_eq!(story.code(), 0, "{trees} {id}");
            server.mark().alive(2).await;
            let beside = format!("beside what {id}");
            client.run(site.script(&beside, "true")).await;
            assert!(!client.terminate(id).await, "{trees} {id}");
            assert_eq!(server.mark().living().len(), 2, "{trees} {id}");
            assert!(held(), "{trees} {id}");
            client.terminate_with(id, json!({"tree": true})).await;
            server.mark().alive(1).await;
        }
        // The last of them goes with the session, and what it needed goes with it.
        client
            .run(site.script("last", programs::LEAVES_A_DAEMON))
            .await;
        server.mark().alive(2).await;
        client.call("session/close", json!({})).await;
        server.mark().alive(1).await;
        patience::seen("nothing is held", || (!held()).then_some(())).await;
    }
}

/// What the server keeps for it is bounded like that.
#[tokio::test]
async fn what_it_leaves_running_counts_among_all_that_run() {
    let (server, client) = ready_with(&["--max-processes", "2"]).await;
    let site = Site::new();
    for id in ["one", "other"] {
        let story = client.run(site.script(id, programs::LEAVES_A_DAEMON)).await;
        assert_eq!(story.code(), 0);
    }
    // Often enough for places that are free a moment after the close.
    for _ in 0..50 {
        let error = client.start_fails(sh("more", "true")).await;
        assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    }
    assert_eq!(server.mark().living().len(), 3);
    client.terminate_with("one", json!({"tree": true})).await;
    // Nobody tells when there is a place.
    let started = async || loop {
        let params = json!({"processId": "more", "argv": ["true"], "cwd": "file:///", "env": {}});
        match client.try_call("process/start", params).await {
            Err(error) => assert_eq!(error.code, -32001),
            Ok(_) => break,
        }
    };
    patience::soon("a place is free", started()).await;
    client.closed("more").await;
}

/// Who wants the place back has to be able to say whose.
#[tokio::test]
async fn what_it_leaves_running_is_known_by_its_name_for_as_long_as_it_lives() {
    let (server, client) = ready_with(&["--closed-retention", "100ms"]).await;
    let site = Site::new();
    client
        .run(site.script("leaves", programs::LEAVES_A_DAEMON))
        .await;
    client.run(sh("closed", "true")).await;
    let forgotten = async |id| while client.listed(id).await.is_some() {};
    patience::soon("what has nothing left is forgotten", forgotten("closed")).await;
    assert!(client.listed("leaves").await.is_some());
    client.terminate_with("leaves", json!({"tree": true})).await;
    server.mark().alive(1).await;
    patience::soon("and so is it then", forgotten("leaves")).await;
}

#[tokio::test]
async fn what_it_leaves_running_has_its_streams_and_its_walls() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        // A terminal that loses its session hangs up on those in its foreground.
        let script = "trap '' HUP; \
                      { while [ ! -e go ]; do sleep 0.01; done; echo later; mkdir .git/x; } & \
                      exit 7";
        for (id, start) in [
            ("pipes", site.script("pipes", script).stdin()),
            ("terminal", site.script("terminal", script).tty()),
        ] {
            client.start(start).await;
            client.exited(id).await;
            let go = site.workspace().join("go");
            std::fs::write(&go, "").expect("it is written");
            let story = client.closed(id).await;
            assert_eq!(story.code(), 7, "{trees} {id}");
            let said = story.text();
            assert!(said.contains("later"), "{trees} {id}: {said}");
            assert!(said.contains("Read-only"), "{trees} {id}: {said}");
            std::fs::remove_file(go).expect("it is there");
        }
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
