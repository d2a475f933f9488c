//! Servers that misbehave.

use std::{sync::Arc, time::Duration};

use outpost_mcp::{CallError, EndReason, Limits, ServerFailure, ServerStatus};
use serde_json::{Value, json};

use super::harness::{TestEnvironment, call, in_each_environment, misbehaving, soon, text};

async fn failure(
    environment: &TestEnvironment,
    server: Value,
    limits: &Limits,
) -> Arc<ServerFailure> {
    let pool = environment.one(&server, limits);
    soon("failure", pool.wait_started()).await;
    match &pool.statuses()["one"] {
        ServerStatus::Failed(why) => Arc::clone(why),
        other => panic!("{server}: {other:?}"),
    }
}

fn sh(script: &str) -> Value {
    json!({"command": "/bin/sh", "args": ["-c", script]})
}

#[tokio::test]
async fn failures_have_the_right_status() {
    let short = Limits {
        startup: Duration::from_secs(2),
        ..Limits::default()
    };
    in_each_environment(async |environment| {
        let default = Limits::default();
        let (exits, rejects) = tokio::join!(
            failure(environment, sh("echo no such thing >&2; exit 3"), &default),
            failure(environment, misbehaving(&["no-handshake"]), &default),
        );
        assert_eq!(
            exits.to_string(),
            "the server exited with code 3; last line on stderr: no such thing"
        );
        assert!(matches!(*rejects, ServerFailure::Handshake(_)), "{rejects:?}");
        let (garbage, silent, busy) = tokio::join!(
            failure(environment, sh("echo hello; echo world; exec sleep 1000"), &short),
            failure(environment, sh("cat >/dev/null"), &short),
            failure(environment, sh("echo busy >&2; exec sleep 1000"), &short),
        );
        assert_eq!(
            garbage.to_string(),
            "the server was not ready within 2s; it wrote 2 lines that are not messages, the first: hello"
        );
        assert_eq!(silent.to_string(), "the server was not ready within 2s");
        assert_eq!(
            busy.to_string(),
            "the server was not ready within 2s; last line on stderr: busy"
        );
    })
    .await;
}

#[tokio::test]
async fn missing_program_reports_the_system_error() {
    in_each_environment(async |environment| {
        let pool = environment.one(&json!({"command": "/nowhere/at/all"}), &Limits::default());
        soon("failure", pool.wait_started()).await;
        let ServerStatus::Failed(why) = &pool.statuses()["one"] else {
            panic!("{:?}", pool.statuses())
        };
        let source = std::error::Error::source(&**why).expect("the executor's error");
        assert!(source.to_string().contains("No such file"), "{source}");
    })
    .await;
}

#[tokio::test]
async fn servers_with_one_handshake_are_supported() {
    let limits = Limits {
        discovery: Duration::from_millis(200),
        ..Limits::default()
    };
    in_each_environment(async |environment| {
        for mode in ["ignores-discover", "exits-on-discover", "newest-only"] {
            let pool = environment.one(&misbehaving(&[mode]), &limits);
            let pid = call(&pool, "pid", json!({})).await;
            assert!(text(&pid.expect(mode)).parse::<u32>().is_ok());
            soon("close", pool.close()).await;
        }
    })
    .await;
}

#[tokio::test]
async fn other_output_is_skipped_and_unterminated_last_line_counts() {
    in_each_environment(async |environment| {
        let pool = environment.one(&misbehaving(&[]), &Limits::default());
        let result = call(&pool, "garbage", json!({})).await.unwrap();
        assert_eq!(text(&result), "still here");
        let result = call(&pool, "exit", json!({})).await.unwrap();
        assert_eq!(text(&result), "last message");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn stderr_flood_does_not_block_calls() {
    in_each_environment(async |environment| {
        let pool = environment.one(&misbehaving(&[]), &Limits::default());
        let result = call(&pool, "flood", json!({"kilobytes": 20_000})).await;
        assert_eq!(text(&result.unwrap()), "done");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn oversized_response_fails_only_its_call() {
    let limits = Limits {
        message_bytes: 100_000,
        ..Limits::default()
    };
    in_each_environment(async |environment| {
        let pool = environment.one(&misbehaving(&[]), &limits);
        let result = call(&pool, "big", json!({"bytes": 99_000})).await.unwrap();
        assert_eq!(text(&result).len(), 99_000);
        let error = call(&pool, "big", json!({"bytes": 100_001}))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        call(&pool, "pid", json!({})).await.unwrap();
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn exit_during_a_call_fails_it_at_once() {
    in_each_environment(async |environment| {
        let pool = environment.one(&misbehaving(&[]), &Limits::default());
        let error = call(&pool, "die", json!({"code": 9})).await.unwrap_err();
        let CallError::Ended(reason) = &error else {
            panic!("{error:?}")
        };
        let last_stderr = Some("last line".into());
        assert_eq!(
            *reason,
            EndReason::Exited {
                code: 9,
                last_stderr
            }
        );
    })
    .await;
}

#[tokio::test]
async fn dropped_call_is_cancelled_on_the_server() {
    in_each_environment(async |environment| {
        let mut server = misbehaving(&[]);
        server["supports_parallel_tool_calls"] = json!(true);
        let pool = environment.one(&server, &Limits::default());
        soon("startup", pool.wait_started()).await;
        {
            let hanging = pool.call("one", "hang", serde_json::Map::new(), None);
            tokio::pin!(hanging);
            // The response to the second call proves that the first was sent.
            tokio::select! {
                _ = &mut hanging => panic!("unexpected response"),
                pid = call(&pool, "pid", json!({})) => drop(pid.unwrap()),
            }
        }
        let cancelled = soon("the cancellation", async {
            loop {
                let cancelled = call(&pool, "cancelled", json!({})).await.unwrap();
                if !text(&cancelled).is_empty() {
                    break text(&cancelled).to_owned();
                }
            }
        });
        assert!(cancelled.await.parse::<u32>().is_ok());
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn calls_are_serialized_without_parallel_support() {
    let environment = TestEnvironment::local().await;
    let mut server = misbehaving(&[]);
    server["tool_timeout_sec"] = json!(0.5);
    let pool = environment.one(&server, &Limits::default());
    soon("startup", pool.wait_started()).await;
    // The second call is sent after the first was cancelled.
    let (hung, cancelled) = tokio::join!(
        call(&pool, "hang", json!({})),
        call(&pool, "cancelled", json!({})),
    );
    assert!(matches!(hung, Err(CallError::TimedOut { .. })), "{hung:?}");
    assert!(text(&cancelled.unwrap()).parse::<u32>().is_ok());

    let mut parallel = misbehaving(&[]);
    parallel["supports_parallel_tool_calls"] = json!(true);
    let pool = environment.one(&parallel, &Limits::default());
    let hanging = pool.call("one", "hang", serde_json::Map::new(), None);
    tokio::select! {
        _ = hanging => panic!("unexpected response"),
        pid = call(&pool, "pid", json!({})) => drop(pid.unwrap()),
    }
}

#[tokio::test]
async fn disabled_tools_are_neither_listed_nor_called() {
    let environment = TestEnvironment::local().await;
    let mut server = misbehaving(&[]);
    server["enabled_tools"] = json!(["pid", "env"]);
    server["disabled_tools"] = json!(["env"]);
    let pool = environment.one(&server, &Limits::default());
    let tools = pool.tools("one").await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["pid"]);
    let error = call(&pool, "env", json!({"name": "A"})).await.unwrap_err();
    assert!(matches!(error, CallError::Disabled { .. }), "{error:?}");
}

#[tokio::test]
async fn endless_list_is_truncated() {
    let environment = TestEnvironment::local().await;
    let pool = environment.one(&misbehaving(&["endless"]), &Limits::default());
    let tools = soon("the list", pool.tools("one")).await.unwrap();
    assert_eq!(tools.len(), Limits::default().listed);
}

#[tokio::test]
async fn server_gets_only_the_configured_variables() {
    in_each_environment(async |environment| {
        let mut server = misbehaving(&[]);
        server["env"] = json!({"GIVEN": "a value", "PATH": std::env::var("PATH").unwrap()});
        server["env_vars"] = json!(["CARGO_MANIFEST_DIR"]);
        let pool = environment.one(&server, &Limits::default());
        let value = async |name: &str| {
            let result = call(&pool, "env", json!({"name": name})).await.unwrap();
            text(&result).to_owned()
        };
        assert_eq!(value("GIVEN").await, "a value");
        let forwarded = value("CARGO_MANIFEST_DIR").await;
        assert_eq!(forwarded, std::env::var("CARGO_MANIFEST_DIR").unwrap());
        assert_ne!(value("HOME").await, "(unset)");
        // Cargo sets this variable, which is not configured.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        assert_eq!(value("CARGO_PKG_NAME").await, "(unset)");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn remote_variables_are_taken_from_the_executor() {
    let environment = TestEnvironment::remote().await;
    let mut server = misbehaving(&[]);
    // The executor runs in this process and has its variables.
    server["env_vars"] = json!([{"name": "CARGO_PKG_NAME", "source": "remote"}]);
    let pool = environment.one(&server, &Limits::default());
    let named = call(&pool, "env", json!({"name": "CARGO_PKG_NAME"}))
        .await
        .unwrap();
    assert_eq!(text(&named), "outpost-mcp");
    let other = call(&pool, "env", json!({"name": "CARGO_PKG_VERSION"}))
        .await
        .unwrap();
    assert_eq!(text(&other), "(unset)");
    let core = call(&pool, "env", json!({"name": "PATH"})).await.unwrap();
    assert_ne!(text(&core), "(unset)");
}

#[tokio::test]
async fn remote_server_without_executor_fails_with_its_name() {
    let mut environment = TestEnvironment::local().await;
    environment.executors.remote = None;
    let mut server = misbehaving(&[]);
    server["environment"] = json!("remote");
    let pool = environment.one(&server, &Limits::default());
    soon("failure", pool.wait_started()).await;
    let ServerStatus::Failed(why) = &pool.statuses()["one"] else {
        panic!("{:?}", pool.statuses())
    };
    assert!(why.to_string().contains("MCP server one"), "{why}");
}

#[tokio::test]
async fn unsupported_list_is_empty() {
    let environment = TestEnvironment::local().await;
    let pool = environment.one(&misbehaving(&["no-templates"]), &Limits::default());
    let session = pool.session("one").await.unwrap();
    assert_eq!(session.resources().await.unwrap().len(), 1);
    let templates = soon("the list", session.resource_templates()).await;
    assert_eq!(templates.unwrap(), []);
    soon("close", pool.close()).await;
}

#[tokio::test]
async fn list_has_the_timeout_of_a_call() {
    let environment = TestEnvironment::local().await;
    let mut server = misbehaving(&["ignores-lists"]);
    server["tool_timeout_sec"] = json!(0.5);
    let pool = environment.one(&server, &Limits::default());
    let error = soon("the list", pool.tools("one")).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    soon("close", pool.close()).await;
}
