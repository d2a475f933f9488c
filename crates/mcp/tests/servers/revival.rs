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
