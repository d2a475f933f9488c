//! Calls that are called off, at servers that others wrote.

use std::pin::pin;

use outpost_mcp::{CallError, Ensemble, Limits, Progress, Status, model::CallToolResult};
use outpost_testkit::mcp::Wiretap;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::stage::{Stage, call, everything, odd, on_each_stage, soon, tapped, text, waiting};

/// A tool of the server on Node.js that goes on for longer than any test, and tells of its steps
/// all the while: it doesn't care whether it was called off.
pub(crate) const LONG: &str = "trigger-long-running-operation";

pub(crate) fn long() -> Value {
    json!({"duration": 1000, "steps": 100_000})
}

/// Calls a tool, does something else once it is under way, and waits no longer.
pub(crate) async fn call_off(
    ensemble: &Ensemble,
    tool: &str,
    arguments: Value,
    meanwhile: impl FnOnce(),
) {
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = arguments.as_object().unwrap().clone();
    let mut called = pin!(ensemble.call("one", tool, arguments, Some(&sender)));
    let step = soon("its first step", async {
        tokio::select! {
            answer = &mut called => panic!("nobody waited for {answer:?}"),
            step = steps.recv() => step,
        }
    })
    .await;
    assert!(step.is_some());
    meanwhile();
}

/// Calls a tool that ends, and says which steps it has told of.
async fn steps_of(
    ensemble: &Ensemble,
    tool: &str,
    arguments: Value,
) -> (CallToolResult, Vec<Progress>) {
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = arguments.as_object().unwrap().clone();
    let called = ensemble.call("one", tool, arguments, Some(&sender));
    let result = soon("an answer", called).await.unwrap();
    drop(sender);
    let mut told = Vec::new();
    while let Some(step) = steps.recv().await {
        told.push(step);
    }
    (result, told)
}

/// The session is the same as ever, and what was called off has left nothing in it, although its
/// server still tells of it.
async fn goes_on(ensemble: &Ensemble, tap: &Wiretap) {
    let short = json!({"duration": 0.2, "steps": 4});
    let (result, steps) = steps_of(ensemble, LONG, short).await;
    assert!(text(&result).contains("Steps: 4."), "{result:?}");
    assert!(!steps.is_empty());
    let own = |step: &Progress| step.total == Some(4.0);
    assert!(steps.iter().all(own), "{steps:?}");
    assert!(matches!(ensemble.statuses()["one"], Status::Ready));
    assert_eq!(tap.count("initialize"), 1, "it was started once");
}

#[tokio::test]
async fn a_server_on_node_is_told_and_goes_on() {
    on_each_stage(async |stage| {
        let tap = Wiretap::new();
        let ensemble = stage.one(&tapped(&everything(), &tap), &Limits::default());
        soon("the server", ensemble.settled()).await;
        call_off(&ensemble, LONG, long(), || ()).await;
        tap.called_off(LONG).await;
        goes_on(&ensemble, &tap).await;
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_on_python_gives_the_call_up() {
    on_each_stage(async |stage| {
        let tap = Wiretap::new();
        let ensemble = stage.one(&tapped(&waiting(), &tap), &Limits::default());
        soon("the server", ensemble.settled()).await;
        let about = ensemble.about("one").await.unwrap().unwrap();
        assert_eq!(about.protocol_version.to_string(), "2026-07-28");
        call_off(&ensemble, "wait", json!({}), || ()).await;
        let told = call(&ensemble, "who_was_called_off", json!({})).await;
        let off = tap.called_off("wait").await;
        assert_eq!(text(&told.unwrap()), off.to_string());
        let (counted, steps) = steps_of(&ensemble, "count", json!({"to": 3})).await;
        assert_eq!(text(&counted), "counted to 3");
        let own = |step: &Progress| step.total == Some(3.0);
        assert!(steps.iter().all(own), "{steps:?}");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn who_took_too_long_is_told_as_well() {
    on_each_stage(async |stage| {
        let tap = Wiretap::new();
        let mut server = tapped(&everything(), &tap);
        server["tool_timeout_sec"] = json!(0.5);
        let ensemble = stage.one(&server, &Limits::default());
        soon("the server", ensemble.settled()).await;
        let error = call(&ensemble, LONG, long()).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        tap.called_off(LONG).await;
        soon("its end", ensemble.close()).await;

        let tap = Wiretap::new();
        let mut server = tapped(&waiting(), &tap);
        server["tool_timeout_sec"] = json!(0.5);
        let ensemble = stage.one(&server, &Limits::default());
        soon("the server", ensemble.settled()).await;
        let error = call(&ensemble, "wait", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let off = tap.called_off("wait").await;
        // So little time may be too little for this one, too.
        let told = soon("word of it", async {
            loop {
                match call(&ensemble, "who_was_called_off", json!({})).await {
                    Ok(told) => break told,
                    Err(CallError::TimedOut { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(text(&told.await), off.to_string());
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_cut_does_not_keep_it_from_the_server() {
    let stage = Stage::remote().await;
    let tap = Wiretap::new();
    let ensemble = stage.one(&tapped(&everything(), &tap), &Limits::default());
    soon("the server", ensemble.settled()).await;
    call_off(&ensemble, LONG, long(), || stage.executor.cut()).await;
    tap.called_off(LONG).await;
    goes_on(&ensemble, &tap).await;
    soon("its end", ensemble.close()).await;

    let tap = Wiretap::new();
    let ensemble = stage.one(&tapped(&waiting(), &tap), &Limits::default());
    soon("the server", ensemble.settled()).await;
    call_off(&ensemble, "wait", json!({}), || stage.executor.cut()).await;
    let told = call(&ensemble, "who_was_called_off", json!({})).await;
    let off = tap.called_off("wait").await;
    assert_eq!(text(&told.unwrap()), off.to_string());
    soon("its end", ensemble.close()).await;
}

#[tokio::test]
async fn the_farewell_comes_before_the_end() {
    on_each_stage(async |stage| {
        let tap = Wiretap::new();
        let ensemble = stage.one(&tapped(&everything(), &tap), &Limits::default());
        soon("the server", ensemble.settled()).await;
        call_off(&ensemble, LONG, long(), || ()).await;
        soon("its end", ensemble.close()).await;
        tap.called_off(LONG).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_all_the_same_is_nobodys() {
    on_each_stage(async |stage| {
        let mut server = odd(&[]);
        server["tool_timeout_sec"] = json!(0.2);
        let ensemble = stage.one(&server, &Limits::default());
        soon("the server", ensemble.settled()).await;
        let error = call(&ensemble, "answers-late", json!({})).await;
        let error = error.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let result = soon("an answer", async {
            loop {
                // So little time may be too little for this one, too.
                match call(&ensemble, "cancelled", json!({})).await {
                    Err(CallError::TimedOut { .. }) => {}
                    other => break other.unwrap(),
                }
            }
        })
        .await;
        // It has heard that the first is off, has answered that all the same, and then this one.
        assert!(text(&result).parse::<u32>().is_ok(), "{result:?}");
        soon("its end", ensemble.close()).await;
    })
    .await;
}
