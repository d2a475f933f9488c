//! `process/spawn`: acknowledged at once, told of when it has exited.

use outpost_testkit::{Client, base64};
use serde_json::{Value, json};

use super::face::{Face, introduce};
use crate::{free, over_each_transport};

const SPAWN: Face = Face::Spawn;

async fn everywhere(test: impl AsyncFn(&Client)) {
    over_each_transport(async |_, client| {
        introduce(client).await;
        test(client).await;
    })
    .await;
}

#[tokio::test]
async fn it_is_answered_before_its_child_has_exited() {
    everywhere(async |client| {
        let more = json!({"streamStdin": true});
        // The answer is waited for in here, and only then the child is let go.
        let run = SPAWN.begin(client, "p", "read x; exit 3", more).await;
        assert!(!run.is_over(client));
        SPAWN.types(client, "p", "go\n").await;
        assert_eq!(run.end(client).await.exit_code, 3);
    })
    .await;
}

#[tokio::test]
async fn the_exit_has_all_its_members_and_no_others() {
    everywhere(async |client| {
        let script = "printf out; printf err >&2; exit 7";
        let outcome = SPAWN.run(client, "p", script, json!({})).await;
        let expected = json!({
            "processHandle": "p", "exitCode": 7, "stdout": "out", "stdoutCapReached": false,
            "stderr": "err", "stderrCapReached": false, "outputDrainTimedOut": false,
        });
        assert_eq!(outcome.whole, expected);
    })
    .await;
}

#[tokio::test]
async fn everything_a_client_may_send_is_understood() {
    everywhere(async |client| {
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
async fn it_and_its_siblings_need_the_experimental_api() {
    let server = free().start().await;
    let introductions = [
        json!({"clientName": "x"}),
        json!({"clientInfo": {"name": "x", "version": "1"}}),
        json!({"clientInfo": {"name": "x", "version": "1"}, "capabilities": {}}),
        json!({"clientInfo": {"name": "x"}, "capabilities": {"experimentalApi": false}}),
    ];
    let file = server.folder().join("touched");
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
            let error = client.fails(method, params).await;
            let expected = format!("{method} requires experimentalApi capability");
            assert_eq!(error.parts(), (-32600, &*expected));
        }
        // The other face doesn't need it.
        let answer = client
            .call("command/exec", json!({"command": ["true"]}))
            .await;
        assert_eq!(answer["exitCode"], 0);
    }
    assert!(!file.exists());
    // Whoever asks for it has it, however it introduces itself.
    let client = server.connect().await;
    let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
    client.call("initialize", introduction).await;
    assert_eq!(
        SPAWN.run(&client, "p", "exit 1", json!({})).await.exit_code,
        1
    );
}

#[tokio::test]
async fn a_handle_in_use_is_refused_and_free_after_the_exit() {
    everywhere(async |client| {
        let more = json!({"streamStdin": true});
        for round in 0..20 {
            let script = format!("read x; exit {round}");
            let run = SPAWN
                .begin(client, "the \"one\"", &script, more.clone())
                .await;
            let again = SPAWN.sh("the \"one\"", "true", json!({}));
            let error = SPAWN.fails(client, again).await;
            let expected = r#"duplicate active process handle: "the \"one\"""#;
            assert_eq!(error.parts(), (-32600, expected));
            let close = json!({"processHandle": "the \"one\"", "closeStdin": true});
            client.call("process/writeStdin", close).await;
            assert_eq!(run.end(client).await.exit_code, round);
            let gone = json!({"processHandle": "the \"one\""});
            let error = client.fails("process/kill", gone).await;
            let expected = r#"no active process for process handle "the \"one\"""#;
            assert_eq!(error.parts(), (-32600, expected));
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_sent_behind_it_waits_for_it() {
    everywhere(async |client| {
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
                assert_eq!(client.answer(id).await, Ok(json!({})));
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
async fn a_kill_right_behind_it_finds_it() {
    everywhere(async |client| {
        for round in 0..10 {
            let id = format!("p{round}");
            let start = SPAWN.sh(&id, "sleep 1000", json!({}));
            let spawn = client.request("process/spawn", start).await;
            let kill = client
                .request("process/kill", json!({"processHandle": id}))
                .await;
            assert_eq!(client.answer(spawn).await, Ok(json!({})));
            assert_eq!(client.answer(kill).await, Ok(json!({})));
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
