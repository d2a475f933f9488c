//! Servers that end, and are started again.

use std::time::Duration;

use outpost_mcp::{CallError, Failure, Fault, Limits, Status};
use serde_json::json;

use crate::stage::{Stage, call, odd, on_each_stage, soon, text};

#[tokio::test]
async fn one_that_died_is_there_again_for_the_next_call() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&odd(&[]), &Limits::default());
        let first = call(&ensemble, "pid", json!({})).await.unwrap();
        let error = call(&ensemble, "die", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Ended(_)), "{error:?}");
        let second = soon("the next one", async {
            loop {
                // The death may be known to the call before it is to the member.
                match call(&ensemble, "pid", json!({})).await {
                    Ok(result) => break result,
                    Err(CallError::Ended(_)) => tokio::task::yield_now().await,
                    Err(other) => panic!("{other:?}"),
                }
            }
        })
        .await;
        assert_ne!(text(&first), text(&second));
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn one_that_can_not_be_started_again_is_given_up() {
    let limits = Limits {
        revival_pause: Duration::from_millis(1),
        ..Limits::default()
    };
    on_each_stage(async |stage| {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        // It is asked in the older way at once, or it would be started twice.
        let ensemble = stage.one(&odd(&["once", seen.to_str().unwrap()]), &limits);
        call(&ensemble, "die", json!({})).await.unwrap_err();
        let mut status = Status::Ready;
        let why = soon("it to be given up", async {
            loop {
                status = ensemble.changed("one", &status).await.unwrap();
                if let Status::Failed(why) = &status {
                    break why.clone();
                }
            }
        })
        .await;
        assert!(
            matches!(&*why, Failure::Ended(Fault::Exited { code: 4, .. })),
            "{why:?}"
        );
        let error = call(&ensemble, "pid", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("isn't ready"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn all_are_started_at_once() {
    on_each_stage(async |stage| {
        let folder = tempfile::tempdir().unwrap();
        // Each goes on when the other is there.
        let one_of_two = |own: &str, other: &str| {
            let mut server = odd(&[]);
            let script = r#"touch "$0"; until [ -e "$1" ]; do sleep 0.01; done; shift; exec "$@""#;
            let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
            let mut args = vec!["-c".to_owned(), script.to_owned(), path(own), path(other)];
            args.push(server["command"].as_str().unwrap().to_owned());
            let rest = server["args"].as_array().unwrap().iter();
            args.extend(rest.map(|word| word.as_str().unwrap().to_owned()));
            server["command"] = json!("/bin/sh");
            server["args"] = json!(args);
            server
        };
        let servers = [("a", one_of_two("a", "b")), ("b", one_of_two("b", "a"))];
        let ensemble = stage.many(&servers, &Limits::default());
        soon("both", ensemble.settled()).await;
        let ready = |status: &Status| matches!(status, Status::Ready);
        let statuses = ensemble.statuses();
        assert!(statuses.values().all(ready), "{statuses:?}");
        soon("their end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn nobody_is_started_whom_nobody_wants() {
    let stage = Stage::local().await;
    let mut server = odd(&[]);
    server["enabled"] = json!(false);
    let ensemble = stage.one(&server, &Limits::default());
    assert!(ensemble.statuses().is_empty());
    let error = call(&ensemble, "pid", json!({})).await.unwrap_err();
    assert!(
        matches!(error, CallError::UnknownServer { .. }),
        "{error:?}"
    );

    let ensemble = stage.one(&odd(&["silent"]), &Limits::default());
    assert!(matches!(ensemble.statuses()["one"], Status::Starting));
    soon("the end", ensemble.close()).await;
    assert!(matches!(ensemble.statuses()["one"], Status::Cancelled));
}
