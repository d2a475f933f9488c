//! Servers that others wrote.

use std::time::Duration;

use outpost_mcp::{CallError, Limits, Status, model::ContentBlock};
use serde_json::json;
use tokio::sync::mpsc;

use crate::stage::{Stage, call, everything, on_each_stage, soon, text, time};

#[tokio::test]
async fn both_generations_are_understood() {
    on_each_stage(async |stage| {
        let servers = [("old", everything()), ("new", time())];
        let ensemble = stage.many(&servers, &Limits::default());
        soon("both", ensemble.settled()).await;
        for (server, version, tool) in [
            ("old", "2025-11-25", "get-sum"),
            ("new", "2026-07-28", "get_current_time"),
        ] {
            let about = ensemble.about(server).await.unwrap().unwrap();
            assert_eq!(about.protocol_version.to_string(), version);
            let tools = ensemble.tools(server).await.unwrap();
            assert!(tools.iter().any(|known| known.name == tool), "{tools:?}");
        }
        soon("their end", ensemble.close()).await;
        let cancelled = |status: &Status| matches!(status, Status::Cancelled);
        assert!(ensemble.statuses().values().all(cancelled));
    })
    .await;
}

#[tokio::test]
async fn tools_resources_images_and_errors_come_through() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&everything(), &Limits::default());
        let sum = call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");

        let image = call(&ensemble, "get-tiny-image", json!({})).await.unwrap();
        let is_png = |block: &ContentBlock| {
            matches!(block, ContentBlock::Image(image)
                if image.mime_type == "image/png" && image.data.starts_with("iVBORw0KGgo"))
        };
        assert!(image.content.iter().any(is_png), "{image:?}");

        let wrong = call(&ensemble, "get-sum", json!({"a": "x"})).await.unwrap();
        assert_eq!(wrong.is_error, Some(true), "{wrong:?}");

        let resources = ensemble.resources("one").await.unwrap();
        let uri = resources[0].uri.clone();
        let read = ensemble.read_resource("one", &uri).await.unwrap();
        assert_eq!(read.contents.len(), 1, "{read:?}");
        let templates = ensemble.resource_templates("one").await.unwrap();
        assert!(!templates.is_empty());
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn progress_is_told_in_order() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&everything(), &Limits::default());
        let (sender, mut steps) = mpsc::channel(64);
        let arguments = json!({"duration": 0.4, "steps": 4});
        let arguments = arguments.as_object().unwrap().clone();
        let tool = "trigger-long-running-operation";
        let called = ensemble.call("one", tool, arguments, Some(&sender));
        let result = soon("an answer", called).await.unwrap();
        assert!(text(&result).contains("completed"), "{result:?}");
        drop(sender);
        let mut done = Vec::new();
        while let Some(step) = steps.recv().await {
            assert_eq!(step.total, Some(4.0));
            done.push(step.done as u32);
        }
        // Which of them have come by the time of the answer is the server's
        // business; none comes twice.
        assert!(done.len() >= 3, "{done:?}");
        done.sort_unstable();
        done.dedup();
        assert!(done.len() >= 3 && done.iter().all(|step| (1..=4).contains(step)));
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_message_of_megabytes_goes_both_ways() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&everything(), &Limits::default());
        let message = "0123456789abcdef".repeat(3 * 64 * 1024);
        let echo = call(&ensemble, "echo", json!({"message": message}))
            .await
            .unwrap();
        assert!(text(&echo) == format!("Echo: {message}"), "another echo");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_short_drop_goes_unnoticed() {
    let stage = Stage::remote().await;
    let ensemble = stage.one(&everything(), &Limits::default());
    soon("the server", ensemble.settled()).await;
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = json!({"duration": 1, "steps": 10});
    let arguments = arguments.as_object().unwrap().clone();
    let tool = "trigger-long-running-operation";
    let called = ensemble.call("one", tool, arguments, Some(&sender));
    let cutting = async {
        soon("the call to be under way", steps.recv()).await;
        stage.executor.cut();
        soon("more of it", steps.recv()).await;
        stage.executor.cut();
    };
    let (result, ()) = soon("an answer", async { tokio::join!(called, cutting) }).await;
    assert!(text(&result.unwrap()).contains("completed"));
    assert!(matches!(ensemble.statuses()["one"], Status::Ready));
    soon("its end", ensemble.close()).await;
}

#[tokio::test]
async fn a_lost_executor_is_known_at_once() {
    let stage = Stage::remote().await;
    let ensemble = stage.one(&everything(), &Limits::default());
    soon("the server", ensemble.settled()).await;
    let (sender, mut steps) = mpsc::channel(64);
    let arguments = json!({"duration": 1000, "steps": 10_000});
    let arguments = arguments.as_object().unwrap().clone();
    let tool = "trigger-long-running-operation";
    let called = ensemble.call("one", tool, arguments, Some(&sender));
    let vanishing = async {
        soon("the call to be under way", steps.recv()).await;
        stage.executor.vanish();
    };
    let (result, ()) = soon("an error", async { tokio::join!(called, vanishing) }).await;
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
async fn a_call_that_takes_too_long_is_called_off() {
    on_each_stage(async |stage| {
        let mut server = everything();
        server["tool_timeout_sec"] = json!(0.3);
        let ensemble = stage.one(&server, &Limits::default());
        let arguments = json!({"duration": 1000, "steps": 2});
        let called = call(&ensemble, "trigger-long-running-operation", arguments).await;
        let within = Duration::from_millis(300);
        assert!(
            matches!(called, Err(CallError::TimedOut { within: told }) if told == within),
            "{called:?}"
        );
        // And the next one has its turn.
        let sum = call(&ensemble, "get-sum", json!({"a": 1, "b": 1}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 1 and 1 is 2.");
        soon("its end", ensemble.close()).await;
    })
    .await;
}
