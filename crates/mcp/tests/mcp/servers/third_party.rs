//! Third-party servers.

use std::time::Duration;

use outpost_mcp::{CallError, Limits, ServerStatus, model::ContentBlock};
use serde_json::json;
use tokio::sync::mpsc;

use super::harness::{TestEnvironment, call, everything, in_each_environment, soon, text, time};

#[tokio::test]
async fn both_handshakes_are_supported() {
    in_each_environment(async |environment| {
        let servers = [("old", everything()), ("new", time())];
        let pool = environment.many(&servers, &Limits::default());
        soon("startup", pool.wait_started()).await;
        for (server, version, tool) in [
            ("old", "2025-11-25", "get-sum"),
            ("new", "2026-07-28", "get_current_time"),
        ] {
            let about = pool.session(server).await.unwrap().peer_info().unwrap();
            assert_eq!(about.protocol_version.to_string(), version);
            let tools = pool.tools(server).await.unwrap();
            assert!(tools.iter().any(|known| known.name == tool), "{tools:?}");
        }
        soon("close", pool.close()).await;
        let cancelled = |status: &ServerStatus| matches!(status, ServerStatus::Cancelled);
        assert!(pool.statuses().values().all(cancelled));
    })
    .await;
}

#[tokio::test]
async fn tools_resources_images_and_errors_work() {
    in_each_environment(async |environment| {
        let pool = environment.one(&everything(), &Limits::default());
        let sum = call(&pool, "get-sum", json!({"a": 2, "b": 3}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");

        let image = call(&pool, "get-tiny-image", json!({})).await.unwrap();
        let is_png = |block: &ContentBlock| {
            matches!(block, ContentBlock::Image(image)
                if image.mime_type == "image/png" && image.data.starts_with("iVBORw0KGgo"))
        };
        assert!(image.content.iter().any(is_png), "{image:?}");

        let invalid = call(&pool, "get-sum", json!({"a": "x"})).await.unwrap();
        assert_eq!(invalid.is_error, Some(true), "{invalid:?}");

        let session = pool.session("one").await.unwrap();
        let resources = session.resources().await.unwrap();
        let read = session.read_resource(&resources[0].uri).await.unwrap();
        assert_eq!(read.contents.len(), 1, "{read:?}");
        assert!(!session.resource_templates().await.unwrap().is_empty());
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn progress_is_forwarded() {
    in_each_environment(async |environment| {
        let pool = environment.one(&everything(), &Limits::default());
        let (sender, mut steps) = mpsc::channel(64);
        let arguments = json!({"duration": 0.4, "steps": 4});
        let arguments = arguments.as_object().unwrap().clone();
        let tool = "trigger-long-running-operation";
        let called = pool.call("one", tool, arguments, Some(&sender));
        let result = soon("a response", called).await.unwrap();
        assert!(text(&result).contains("completed"), "{result:?}");
        drop(sender);
        let mut done = Vec::new();
        while let Some(step) = steps.recv().await {
            assert_eq!(step.total, Some(4.0));
            done.push(step.progress as u32);
        }
        // The server may respond before it has sent all of them; none is sent twice.
        assert!(done.len() >= 3, "{done:?}");
        done.sort_unstable();
        done.dedup();
        assert!(done.len() >= 3 && done.iter().all(|step| (1..=4).contains(step)));
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn megabyte_message_passes_both_ways() {
    in_each_environment(async |environment| {
        let pool = environment.one(&everything(), &Limits::default());
        let message = "0123456789abcdef".repeat(3 * 64 * 1024);
        let echo = call(&pool, "echo", json!({"message": message}))
            .await
            .unwrap();
        assert!(text(&echo) == format!("Echo: {message}"), "wrong echo");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn short_disconnect_is_unnoticed() {
    let environment = TestEnvironment::remote().await;
    let pool = environment.one(&everything(), &Limits::default());
    soon("startup", pool.wait_started()).await;
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = json!({"duration": 1, "steps": 10});
    let arguments = arguments.as_object().unwrap().clone();
    let tool = "trigger-long-running-operation";
    let called = pool.call("one", tool, arguments, Some(&sender));
    let cutting = async {
        soon("the start of the call", steps.recv()).await;
        environment.executor.cut();
        soon("further progress", steps.recv()).await;
        environment.executor.cut();
    };
    let (result, ()) = soon("a response", async { tokio::join!(called, cutting) }).await;
    assert!(text(&result.unwrap()).contains("completed"));
    assert!(matches!(pool.statuses()["one"], ServerStatus::Ready(_)));
    soon("close", pool.close()).await;
}

#[tokio::test]
async fn lost_executor_fails_the_call_at_once() {
    let environment = TestEnvironment::remote().await;
    let pool = environment.one(&everything(), &Limits::default());
    soon("startup", pool.wait_started()).await;
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = json!({"duration": 1000, "steps": 10_000});
    let arguments = arguments.as_object().unwrap().clone();
    let tool = "trigger-long-running-operation";
    let called = pool.call("one", tool, arguments, Some(&sender));
    let disappearing = async {
        soon("the start of the call", steps.recv()).await;
        environment.executor.disappear();
    };
    let (result, ()) = soon("an error", async { tokio::join!(called, disappearing) }).await;
    let error = result.unwrap_err();
    assert!(matches!(error, CallError::Ended(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("exec-server transport disconnected: "),
        "{error}"
    );
}

#[tokio::test]
async fn slow_call_times_out() {
    in_each_environment(async |environment| {
        let mut server = everything();
        server["tool_timeout_sec"] = json!(0.3);
        let pool = environment.one(&server, &Limits::default());
        let arguments = json!({"duration": 1000, "steps": 2});
        let called = call(&pool, "trigger-long-running-operation", arguments).await;
        let within = Duration::from_millis(300);
        assert!(
            matches!(called, Err(CallError::TimedOut { within: reported }) if reported == within),
            "{called:?}"
        );
        // The next call is possible.
        let sum = call(&pool, "get-sum", json!({"a": 1, "b": 1}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 1 and 1 is 2.");
        soon("close", pool.close()).await;
    })
    .await;
}
