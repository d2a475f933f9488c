//! Restarts of servers.

use std::time::Duration;

use outpost_mcp::{CallError, EndReason, Limits, ServerFailure, ServerStatus};
use serde_json::json;

use super::harness::{TestEnvironment, call, in_each_environment, misbehaving, soon, text};

#[tokio::test]
async fn exited_server_is_restarted_for_the_next_call() {
    in_each_environment(async |environment| {
        let pool = environment.one(&misbehaving(&[]), &Limits::default());
        let first = call(&pool, "pid", json!({})).await.unwrap();
        let error = call(&pool, "die", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Ended(_)), "{error:?}");
        let second = soon("the restart", async {
            loop {
                // The call may notice the exit before the pool does.
                match call(&pool, "pid", json!({})).await {
                    Ok(result) => break result,
                    Err(CallError::Ended(_)) => tokio::task::yield_now().await,
                    Err(other) => panic!("{other:?}"),
                }
            }
        })
        .await;
        assert_ne!(text(&first), text(&second));
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn failing_restarts_end_in_failure() {
    let limits = Limits {
        restart_delay: Duration::from_millis(1),
        ..Limits::default()
    };
    in_each_environment(async |environment| {
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        let pool = environment.one(&misbehaving(&["once", seen.to_str().unwrap()]), &limits);
        call(&pool, "die", json!({})).await.unwrap_err();
        let mut status = pool.status("one").unwrap();
        let failed = status.wait_for(|status| matches!(status, ServerStatus::Failed(_)));
        let failed = soon("permanent failure", failed).await.unwrap().clone();
        let ServerStatus::Failed(why) = failed else {
            panic!("{failed:?}")
        };
        assert!(
            matches!(
                &*why,
                ServerFailure::Ended(EndReason::Exited { code: 4, .. })
            ),
            "{why:?}"
        );
        let error = call(&pool, "pid", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("is not ready"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn servers_start_concurrently() {
    in_each_environment(async |environment| {
        let directory = tempfile::tempdir().unwrap();
        // Each server waits for the other to start.
        let one_of_two = |own: &str, other: &str| {
            let mut server = misbehaving(&[]);
            let script = r#"touch "$0"; until [ -e "$1" ]; do sleep 0.01; done; shift; exec "$@""#;
            let path = |name| directory.path().join(name).to_str().unwrap().to_owned();
            let mut args = vec!["-c".to_owned(), script.to_owned(), path(own), path(other)];
            args.push(server["command"].as_str().unwrap().to_owned());
            let rest = server["args"].as_array().unwrap().iter();
            args.extend(rest.map(|word| word.as_str().unwrap().to_owned()));
            server["command"] = json!("/bin/sh");
            server["args"] = json!(args);
            server
        };
        let servers = [("a", one_of_two("a", "b")), ("b", one_of_two("b", "a"))];
        let pool = environment.many(&servers, &Limits::default());
        soon("startup", pool.wait_started()).await;
        let ready = |status: &ServerStatus| matches!(status, ServerStatus::Ready(_));
        let statuses = pool.statuses();
        assert!(statuses.values().all(ready), "{statuses:?}");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn disabled_server_is_not_started_and_close_cancels_startup() {
    let environment = TestEnvironment::local().await;
    let mut server = misbehaving(&[]);
    server["enabled"] = json!(false);
    let pool = environment.one(&server, &Limits::default());
    assert!(pool.statuses().is_empty());
    let error = call(&pool, "pid", json!({})).await.unwrap_err();
    assert!(
        matches!(error, CallError::UnknownServer { .. }),
        "{error:?}"
    );

    let pool = environment.one(&misbehaving(&["silent"]), &Limits::default());
    assert!(matches!(pool.statuses()["one"], ServerStatus::Starting));
    soon("close", pool.close()).await;
    assert!(matches!(pool.statuses()["one"], ServerStatus::Cancelled));
}
