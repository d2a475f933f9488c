//! Tests `process/spawn`: a response at once and a notification at the exit.

use outpost_testkit::{Client, base64};
use serde_json::{Value, json};

use super::dialect::{Dialect, app_handshake};
use crate::{over_each_transport, unsandboxed_outpost};

const SPAWN: Dialect = Dialect::Spawn;

async fn on_every_transport(test: impl AsyncFn(&Client)) {
    over_each_transport(async |_, client| {
        app_handshake(client).await;
        test(client).await;
    })
    .await;
}

#[tokio::test]
async fn response_precedes_the_exit() {
    on_every_transport(async |client| {
        let more = json!({"streamStdin": true});
        // `begin` waits for the response. Only then the child may exit.
        let run = SPAWN.begin(client, "p", "read x; exit 3", more).await;
        assert!(!run.is_over(client));
        SPAWN.write_text(client, "p", "go\n").await;
        assert_eq!(run.end(client).await.exit_code, 3);
    })
    .await;
}

#[tokio::test]
async fn exit_has_exactly_its_members() {
    on_every_transport(async |client| {
        let script = "printf out; printf err >&2; exit 7";
        let mut outcome = SPAWN.run(client, "p", script, json!({})).await;
        assert!(outcome.whole["usage"].take().is_object());
        let expected = json!({
            "processHandle": "p", "exitCode": 7, "stdout": "out", "stdoutCapReached": false,
            "stderr": "err", "stderrCapReached": false, "outputDrainTimedOut": false,
            "endedBy": "exit", "usage": null,
        });
        assert_eq!(outcome.whole, expected);
    })
    .await;
}

#[tokio::test]
async fn every_released_param_is_accepted() {
    on_every_transport(async |client| {
        let more = json!({
            "cwd": "/", "env": {"A": "b", "PWD": null}, "tty": false, "streamStdin": false,
            "streamStdoutStderr": false, "size": null, "outputBytesCap": 1_048_576,
            "timeoutMs": 10_000, "whatElse": 1,
        });
        let outcome = SPAWN.run(client, "p", "pwd; echo $A", more).await;
        assert_eq!(outcome.stdout, "/\nb\n");
        let more = json!({
            "env": null, "tty": null, "streamStdin": null, "streamStdoutStderr": null,
            "outputBytesCap": null, "timeoutMs": null,
        });
        assert_eq!(SPAWN.run(client, "p", "exit 2", more).await.exit_code, 2);
    })
    .await;
}

#[tokio::test]
async fn methods_need_the_experimental_api() {
    let server = unsandboxed_outpost().start().await;
    let introductions = [
        json!({"clientName": "x"}),
        json!({"clientInfo": {"name": "x", "version": "1"}}),
        json!({"clientInfo": {"name": "x", "version": "1"}, "capabilities": {}}),
        json!({"clientInfo": {"name": "x", "version": "1"}, "capabilities": {"experimentalApi": false}}),
    ];
    let file = server.dir().join("touched");
    for introduction in introductions {
        let client = server.connect().await;
        client.call("initialize", introduction).await;
        for method in [
            "process/spawn",
            "process/writeStdin",
            "process/resizePty",
            "process/kill",
        ] {
            let params = json!({
                "command": ["touch", file], "processHandle": "p", "cwd": "/tmp",
                "size": {"rows": 1, "cols": 1}, "closeStdin": true,
            });
            let error = client.call_fails(method, params).await;
            let expected = format!("{method} requires experimentalApi capability");
            assert_eq!(error.parts(), (-32600, &*expected));
        }
        // `command/exec` doesn't need the capability.
        let response = client
            .call("command/exec", json!({"command": ["true"]}))
            .await;
        assert_eq!(response["exitCode"], 0);
    }
    assert!(!file.exists());
    // The capability counts with either form of the handshake.
    let client = server.connect().await;
    let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
    client.call("initialize", introduction).await;
    assert_eq!(
        SPAWN.run(&client, "p", "exit 1", json!({})).await.exit_code,
        1
    );
}

#[tokio::test]
async fn handle_in_use_is_rejected_and_free_after_the_exit() {
    on_every_transport(async |client| {
        let more = json!({"streamStdin": true});
        for round in 0..20 {
            let script = format!("read x; exit {round}");
            let run = SPAWN
                .begin(client, "the \"one\"", &script, more.clone())
                .await;
            let again = SPAWN.sh("the \"one\"", "true", json!({}));
            let error = SPAWN.call_fails(client, again).await;
            let expected = r#"duplicate active process handle: "the \"one\"""#;
            assert_eq!(error.parts(), (-32600, expected));
            let close = json!({"processHandle": "the \"one\"", "closeStdin": true});
            client.call("process/writeStdin", close).await;
            assert_eq!(run.end(client).await.exit_code, round);
            let gone = json!({"processHandle": "the \"one\""});
            let error = client.call_fails("process/kill", gone).await;
            let expected = r#"no active process for process handle "the \"one\"""#;
            assert_eq!(error.parts(), (-32600, expected));
        }
    })
    .await;
}

#[tokio::test]
async fn later_requests_wait_for_the_start() {
    on_every_transport(async |client| {
        for round in 0..10 {
            let id = format!("p{round}");
            let more = json!({"streamStdin": true, "tty": round % 2 == 0});
            let start = SPAWN.sh(&id, "read x; echo got:$x; exit 5", more);
            let delta = json!({"processHandle": id, "deltaBase64": base64("word\n")});
            let requests: [(&str, Value); 2] =
                [("process/spawn", start), ("process/writeStdin", delta)];
            let mut ids = Vec::new();
            for (method, params) in requests {
                ids.push(client.request(method, params).await);
            }
            for id in ids {
                assert_eq!(client.response(id).await, Ok(json!({})));
            }
            let exited = client
                .until("the exit", |seen| {
                    let mut messages = seen.messages.iter();
                    messages
                        .find(|message| {
                            message["method"] == "process/exited"
                                && message["params"]["processHandle"] == *id
                        })
                        .cloned()
                })
                .await;
            assert_eq!(exited["params"]["exitCode"], 5);
        }
    })
    .await;
}

#[tokio::test]
async fn kill_right_after_start_finds_the_process() {
    on_every_transport(async |client| {
        for round in 0..10 {
            let id = format!("p{round}");
            let start = SPAWN.sh(&id, "sleep 1000", json!({}));
            let spawn = client.request("process/spawn", start).await;
            let kill = client
                .request("process/kill", json!({"processHandle": id}))
                .await;
            assert_eq!(client.response(spawn).await, Ok(json!({})));
            assert_eq!(client.response(kill).await, Ok(json!({})));
            let code = client
                .until("the exit", |seen| {
                    let mut messages = seen.messages.iter();
                    let exited = messages.find(|message| {
                        message["method"] == "process/exited"
                            && message["params"]["processHandle"] == *id
                    })?;
                    exited["params"]["exitCode"].as_i64()
                })
                .await;
            assert_eq!(code, 137);
        }
    })
    .await;
}
