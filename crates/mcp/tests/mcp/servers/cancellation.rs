//! Cancellation of calls to stdio servers.

use std::pin::pin;

use outpost_mcp::{
    CallError, Limits, ServerPool, ServerStatus,
    model::{CallToolResult, ProgressNotificationParam},
};
use outpost_testkit::mcp_server::StdinRecorder;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::harness::{
    TestEnvironment, call, everything, in_each_environment, misbehaving, recorded, soon, text,
    waiting,
};

/// A tool of the Node.js server that runs longer than any test, reports progress, and ignores
/// its cancellation.
pub(crate) const LONG: &str = "trigger-long-running-operation";

/// Returns the arguments of `LONG`.
pub(crate) fn long() -> Value {
    json!({"duration": 1000, "steps": 100_000})
}

/// Calls a tool, runs `meanwhile` once the call is in progress, and drops the call.
pub(crate) async fn cancel_call(
    pool: &ServerPool,
    tool: &str,
    arguments: Value,
    meanwhile: impl FnOnce(),
) {
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = arguments.as_object().unwrap().clone();
    let mut call = pin!(pool.call("one", tool, arguments, Some(&sender)));
    let step = soon("the first step", async {
        tokio::select! {
            response = &mut call => panic!("unexpected response: {response:?}"),
            step = steps.recv() => step,
        }
    })
    .await;
    assert!(step.is_some());
    meanwhile();
}

/// Calls a tool and returns its result and progress.
async fn call_with_progress(
    pool: &ServerPool,
    tool: &str,
    arguments: Value,
) -> (CallToolResult, Vec<ProgressNotificationParam>) {
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = arguments.as_object().unwrap().clone();
    let called = pool.call("one", tool, arguments, Some(&sender));
    let result = soon("a response", called).await.unwrap();
    drop(sender);
    let mut received = Vec::new();
    while let Some(step) = steps.recv().await {
        received.push(step);
    }
    (result, received)
}

/// Checks that the session works and that progress of the cancelled call, which the server
/// still sends, is dropped.
async fn assert_session_works(pool: &ServerPool, recorder: &StdinRecorder) {
    let short = json!({"duration": 0.2, "steps": 4});
    let (result, steps) = call_with_progress(pool, LONG, short).await;
    assert!(text(&result).contains("Steps: 4."), "{result:?}");
    assert!(!steps.is_empty());
    let own_step = |step: &ProgressNotificationParam| step.total == Some(4.0);
    assert!(steps.iter().all(own_step), "{steps:?}");
    assert!(matches!(pool.statuses()["one"], ServerStatus::Ready(_)));
    assert_eq!(
        recorder.count("initialize"),
        1,
        "the server was started once"
    );
}

#[tokio::test]
async fn node_server_receives_cancellation_and_continues() {
    in_each_environment(async |environment| {
        let recorder = StdinRecorder::new();
        let pool = environment.one(&recorded(&everything(), &recorder), &Limits::default());
        soon("startup", pool.wait_started()).await;
        cancel_call(&pool, LONG, long(), || ()).await;
        recorder.cancelled_call(LONG).await;
        assert_session_works(&pool, &recorder).await;
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn python_server_cancels_the_call() {
    in_each_environment(async |environment| {
        let recorder = StdinRecorder::new();
        let pool = environment.one(&recorded(&waiting(), &recorder), &Limits::default());
        soon("startup", pool.wait_started()).await;
        let about = pool.session("one").await.unwrap().peer_info().unwrap();
        assert_eq!(about.protocol_version.to_string(), "2026-07-28");
        cancel_call(&pool, "wait", json!({}), || ()).await;
        let cancelled = call(&pool, "cancelled_request", json!({})).await;
        let id = recorder.cancelled_call("wait").await;
        assert_eq!(text(&cancelled.unwrap()), id.to_string());
        let (counted, steps) = call_with_progress(&pool, "count", json!({"to": 3})).await;
        assert_eq!(text(&counted), "counted to 3");
        let own_step = |step: &ProgressNotificationParam| step.total == Some(3.0);
        assert!(steps.iter().all(own_step), "{steps:?}");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn timed_out_call_is_cancelled_on_the_server() {
    in_each_environment(async |environment| {
        let recorder = StdinRecorder::new();
        let mut server = recorded(&everything(), &recorder);
        server["tool_timeout_sec"] = json!(0.5);
        let pool = environment.one(&server, &Limits::default());
        soon("startup", pool.wait_started()).await;
        let error = call(&pool, LONG, long()).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        recorder.cancelled_call(LONG).await;
        soon("close", pool.close()).await;

        let recorder = StdinRecorder::new();
        let mut server = recorded(&waiting(), &recorder);
        server["tool_timeout_sec"] = json!(0.5);
        let pool = environment.one(&server, &Limits::default());
        soon("startup", pool.wait_started()).await;
        let error = call(&pool, "wait", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let id = recorder.cancelled_call("wait").await;
        // The short timeout may hit this call as well.
        let cancelled = soon("the cancellation", async {
            loop {
                match call(&pool, "cancelled_request", json!({})).await {
                    Ok(cancelled) => break cancelled,
                    Err(CallError::TimedOut { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(text(&cancelled.await), id.to_string());
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn cancellation_survives_a_cut_connection() {
    let environment = TestEnvironment::remote().await;
    let recorder = StdinRecorder::new();
    let pool = environment.one(&recorded(&everything(), &recorder), &Limits::default());
    soon("startup", pool.wait_started()).await;
    cancel_call(&pool, LONG, long(), || environment.executor.cut()).await;
    recorder.cancelled_call(LONG).await;
    assert_session_works(&pool, &recorder).await;
    soon("close", pool.close()).await;

    let recorder = StdinRecorder::new();
    let pool = environment.one(&recorded(&waiting(), &recorder), &Limits::default());
    soon("startup", pool.wait_started()).await;
    cancel_call(&pool, "wait", json!({}), || environment.executor.cut()).await;
    let cancelled = call(&pool, "cancelled_request", json!({})).await;
    let id = recorder.cancelled_call("wait").await;
    assert_eq!(text(&cancelled.unwrap()), id.to_string());
    soon("close", pool.close()).await;
}

#[tokio::test]
async fn cancellation_is_sent_before_close() {
    in_each_environment(async |environment| {
        let recorder = StdinRecorder::new();
        let pool = environment.one(&recorded(&everything(), &recorder), &Limits::default());
        soon("startup", pool.wait_started()).await;
        cancel_call(&pool, LONG, long(), || ()).await;
        soon("close", pool.close()).await;
        recorder.cancelled_call(LONG).await;
    })
    .await;
}

#[tokio::test]
async fn late_response_to_a_cancelled_call_is_ignored() {
    in_each_environment(async |environment| {
        let mut server = misbehaving(&[]);
        server["tool_timeout_sec"] = json!(0.2);
        let pool = environment.one(&server, &Limits::default());
        soon("startup", pool.wait_started()).await;
        let error = call(&pool, "responds-late", json!({})).await;
        let error = error.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let result = soon("a response", async {
            loop {
                // The short timeout may hit this call as well.
                match call(&pool, "cancelled", json!({})).await {
                    Err(CallError::TimedOut { .. }) => {}
                    other => break other.unwrap(),
                }
            }
        })
        .await;
        // The server received the cancellation, responded anyway, and then to this call.
        assert!(text(&result).parse::<u32>().is_ok(), "{result:?}");
        soon("close", pool.close()).await;
    })
    .await;
}
