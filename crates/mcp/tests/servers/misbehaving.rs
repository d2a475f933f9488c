//! Servers that don't do what they should.

use std::{sync::Arc, time::Duration};

use outpost_mcp::{CallError, Failure, Fault, Limits, Status};
use serde_json::{Value, json};

use crate::stage::{Stage, call, odd, on_each_stage, soon, text};

async fn failure(stage: &Stage, server: Value, limits: &Limits) -> Arc<Failure> {
    let ensemble = stage.one(&server, limits);
    soon("it to fail", ensemble.settled()).await;
    match &ensemble.statuses()["one"] {
        Status::Failed(why) => Arc::clone(why),
        other => panic!("{server}: {other:?}"),
    }
}

fn sh(script: &str) -> Value {
    json!({"command": "/bin/sh", "args": ["-c", script]})
}

#[tokio::test]
async fn each_ends_in_the_right_status() {
    let hurried = Limits {
        startup: Duration::from_secs(2),
        ..Limits::default()
    };
    on_each_stage(async |stage| {
        let usual = Limits::default();
        let (dies, refuses) = tokio::join!(
            failure(stage, sh("echo no such thing >&2; exit 3"), &usual),
            failure(stage, odd(&["no-handshake"]), &usual),
        );
        assert_eq!(
            dies.to_string(),
            "the server has ended with exit code 3; it said: no such thing"
        );
        assert!(matches!(*refuses, Failure::Handshake(_)), "{refuses:?}");
        let (garbage, silent, deaf) = tokio::join!(
            failure(stage, sh("echo hello; echo world; exec sleep 1000"), &hurried),
            failure(stage, sh("cat >/dev/null"), &hurried),
            failure(stage, sh("echo busy >&2; exec sleep 1000"), &hurried),
        );
        assert_eq!(
            garbage.to_string(),
            "the server wasn't ready within 2s; it wrote 2 lines that are no messages, the first: hello"
        );
        assert_eq!(silent.to_string(), "the server wasn't ready within 2s");
        assert_eq!(
            deaf.to_string(),
            "the server wasn't ready within 2s; it said: busy"
        );
    })
    .await;
}

#[tokio::test]
async fn one_that_is_not_there_is_told_in_the_words_of_the_system() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&json!({"command": "/nowhere/at/all"}), &Limits::default());
        soon("it to fail", ensemble.settled()).await;
        let Status::Failed(why) = &ensemble.statuses()["one"] else {
            panic!("{:?}", ensemble.statuses())
        };
        let source = std::error::Error::source(&**why).expect("the words of the place");
        assert!(source.to_string().contains("No such file"), "{source}");
    })
    .await;
}

#[tokio::test]
async fn there_are_servers_that_can_be_asked_in_one_way_only() {
    let limits = Limits {
        discovery: Duration::from_millis(200),
        ..Limits::default()
    };
    on_each_stage(async |stage| {
        for mode in ["mute-to-discover", "dies-of-discover", "newest-only"] {
            let ensemble = stage.one(&odd(&[mode]), &limits);
            let pid = call(&ensemble, "pid", json!({})).await;
            assert!(text(&pid.expect(mode)).parse::<u32>().is_ok());
            soon("its end", ensemble.close()).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_message_is_skipped_and_a_last_line_needs_no_end() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&odd(&[]), &Limits::default());
        let result = call(&ensemble, "babble", json!({})).await.unwrap();
        assert_eq!(text(&result), "still here");
        let result = call(&ensemble, "batch", json!({})).await.unwrap();
        assert_eq!(text(&result), "one of several");
        let result = call(&ensemble, "leave", json!({})).await.unwrap();
        assert_eq!(text(&result), "farewell");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_errors_holds_nobody_up() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&odd(&[]), &Limits::default());
        let result = call(&ensemble, "flood", json!({"kilobytes": 20_000})).await;
        assert_eq!(text(&result.unwrap()), "done");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_call_and_no_other() {
    let limits = Limits {
        message_bytes: 100_000,
        ..Limits::default()
    };
    on_each_stage(async |stage| {
        let ensemble = stage.one(&odd(&[]), &limits);
        let result = call(&ensemble, "big", json!({"bytes": 99_000}))
            .await
            .unwrap();
        assert_eq!(text(&result).len(), 99_000);
        let error = call(&ensemble, "big", json!({"bytes": 100_001}))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        call(&ensemble, "pid", json!({})).await.unwrap();
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn one_that_dies_in_a_call_is_known_at_once() {
    on_each_stage(async |stage| {
        let ensemble = stage.one(&odd(&[]), &Limits::default());
        let error = call(&ensemble, "die", json!({"code": 9}))
            .await
            .unwrap_err();
        let CallError::Ended(fault) = &error else {
            panic!("{error:?}")
        };
        let said = Some("last words".into());
        assert_eq!(*fault, Fault::Exited { code: 9, said });
    })
    .await;
}

#[tokio::test]
async fn who_stops_waiting_tells_the_server() {
    on_each_stage(async |stage| {
        let mut server = odd(&[]);
        server["supports_parallel_tool_calls"] = json!(true);
        let ensemble = stage.one(&server, &Limits::default());
        soon("the server", ensemble.settled()).await;
        {
            let hanging = ensemble.call("one", "hang", serde_json::Map::new(), None);
            tokio::pin!(hanging);
            // The answer of the second says that the first was sent.
            tokio::select! {
                _ = &mut hanging => panic!("nobody answers"),
                pid = call(&ensemble, "pid", json!({})) => drop(pid.unwrap()),
            }
        }
        let told = soon("word of it", async {
            loop {
                let cancelled = call(&ensemble, "cancelled", json!({})).await.unwrap();
                if !text(&cancelled).is_empty() {
                    break text(&cancelled).to_owned();
                }
            }
        });
        assert!(told.await.parse::<u32>().is_ok());
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn calls_take_turns_unless_the_server_says_otherwise() {
    let stage = Stage::local().await;
    let mut hurried = odd(&[]);
    hurried["tool_timeout_sec"] = json!(0.5);
    let ensemble = stage.one(&hurried, &Limits::default());
    soon("the server", ensemble.settled()).await;
    // The second is asked when the first was called off, so it knows of that.
    let (hung, cancelled) = tokio::join!(
        call(&ensemble, "hang", json!({})),
        call(&ensemble, "cancelled", json!({})),
    );
    assert!(matches!(hung, Err(CallError::TimedOut { .. })), "{hung:?}");
    assert!(text(&cancelled.unwrap()).parse::<u32>().is_ok());

    let mut parallel = odd(&[]);
    parallel["supports_parallel_tool_calls"] = json!(true);
    let ensemble = stage.one(&parallel, &Limits::default());
    let hanging = ensemble.call("one", "hang", serde_json::Map::new(), None);
    tokio::select! {
        _ = hanging => panic!("nobody answers"),
        pid = call(&ensemble, "pid", json!({})) => drop(pid.unwrap()),
    }
}

#[tokio::test]
async fn tools_that_are_disabled_are_neither_listed_nor_called() {
    let stage = Stage::local().await;
    let mut server = odd(&[]);
    server["enabled_tools"] = json!(["pid", "env"]);
    server["disabled_tools"] = json!(["env"]);
    let ensemble = stage.one(&server, &Limits::default());
    let tools = ensemble.tools("one").await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["pid"]);
    let error = call(&ensemble, "env", json!({"name": "A"}))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Disabled { .. }), "{error:?}");
}

#[tokio::test]
async fn a_list_without_an_end_has_one() {
    let stage = Stage::local().await;
    let ensemble = stage.one(&odd(&["endless"]), &Limits::default());
    let tools = soon("the list", ensemble.tools("one")).await.unwrap();
    assert_eq!(tools.len(), Limits::default().listed);
}

#[tokio::test]
async fn a_server_has_the_variables_it_was_promised_and_no_others() {
    on_each_stage(async |stage| {
        let mut server = odd(&[]);
        server["env"] = json!({"GIVEN": "a value", "PATH": std::env::var("PATH").unwrap()});
        server["env_vars"] = json!(["CARGO_MANIFEST_DIR"]);
        let ensemble = stage.one(&server, &Limits::default());
        let value = async |name: &str| {
            let result = call(&ensemble, "env", json!({"name": name})).await.unwrap();
            text(&result).to_owned()
        };
        assert_eq!(value("GIVEN").await, "a value");
        let handed_on = value("CARGO_MANIFEST_DIR").await;
        assert_eq!(handed_on, std::env::var("CARGO_MANIFEST_DIR").unwrap());
        assert_ne!(value("HOME").await, "(unset)");
        // Cargo and nextest set a lot of others, this one among them.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        assert_eq!(value("CARGO_PKG_NAME").await, "(unset)");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn the_executor_gives_what_is_its_own() {
    let stage = Stage::remote().await;
    let mut server = odd(&[]);
    // The executor is this program, so its variables are ours.
    server["env_vars"] = json!([{"name": "CARGO_PKG_NAME", "source": "remote"}]);
    let ensemble = stage.one(&server, &Limits::default());
    let named = call(&ensemble, "env", json!({"name": "CARGO_PKG_NAME"}))
        .await
        .unwrap();
    assert_eq!(text(&named), "outpost-mcp");
    let other = call(&ensemble, "env", json!({"name": "CARGO_PKG_VERSION"}))
        .await
        .unwrap();
    assert_eq!(text(&other), "(unset)");
    let core = call(&ensemble, "env", json!({"name": "PATH"}))
        .await
        .unwrap();
    assert_ne!(text(&core), "(unset)");
}

#[tokio::test]
async fn remote_without_a_remote_place_names_the_server() {
    let mut stage = Stage::local().await;
    stage.launchers.remote = None;
    let mut server = odd(&[]);
    server["environment"] = json!("remote");
    let ensemble = stage.one(&server, &Limits::default());
    soon("it to fail", ensemble.settled()).await;
    let Status::Failed(why) = &ensemble.statuses()["one"] else {
        panic!("{:?}", ensemble.statuses())
    };
    assert!(why.to_string().contains("MCP server one"), "{why}");
}

#[tokio::test]
async fn a_list_that_a_server_does_not_know_is_empty() {
    let stage = Stage::local().await;
    let ensemble = stage.one(&odd(&["no-templates"]), &Limits::default());
    assert_eq!(ensemble.resources("one").await.unwrap().len(), 1);
    let templates = soon("the list", ensemble.resource_templates("one")).await;
    assert_eq!(templates.unwrap(), []);
    soon("its end", ensemble.close()).await;
}

#[tokio::test]
async fn a_list_has_as_much_time_as_a_call() {
    let stage = Stage::local().await;
    let mut server = odd(&["mute-to-lists"]);
    server["tool_timeout_sec"] = json!(0.5);
    let ensemble = stage.one(&server, &Limits::default());
    let error = soon("the list", ensemble.tools("one")).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    soon("its end", ensemble.close()).await;
}
