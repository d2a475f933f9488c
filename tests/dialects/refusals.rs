//! What is refused, with its code and its words.

use serde_json::{Value, json};

use super::face::{Face, everywhere, introduce};
use crate::{free, over_each_transport};

#[tokio::test]
async fn nothing_before_initialize_and_no_initialized_needed() {
    over_each_transport(async |_, client| {
        let methods = [
            "process/spawn",
            "process/writeStdin",
            "process/resizePty",
            "process/kill",
            "command/exec",
            "command/exec/write",
            "command/exec/resize",
            "command/exec/terminate",
        ];
        for method in methods {
            for params in [json!({}), json!({"command": ["true"]}), json!({"argv": []})] {
                let error = client.fails(method, params).await;
                assert_eq!(error.parts(), (-32600, "Not initialized"), "{method}");
            }
        }
        introduce(client).await;
        for face in [Face::Spawn, Face::Command] {
            assert_eq!(
                face.run(client, "p", "exit 1", json!({})).await.exit_code,
                1
            );
        }
    })
    .await;
}

#[tokio::test]
async fn starts_that_make_no_sense() {
    everywhere(async |face, _, client| {
        let start = face.start();
        let size = match face {
            Face::Spawn => "process size",
            Face::Command => "command/exec size",
        };
        let mut cases: Vec<(Value, i64, String)> = vec![
            (
                json!({"command": []}),
                -32600,
                "command must not be empty".to_owned(),
            ),
            (
                json!({"size": {"rows": 1, "cols": 1}}),
                -32602,
                format!("{start} size requires tty: true"),
            ),
            (
                json!({"timeoutMs": -5}),
                -32602,
                format!("{start} timeoutMs must be non-negative, got -5"),
            ),
        ];
        for (rows, cols) in [(0, 1), (1, 0), (0, 0)] {
            cases.push((
                json!({"tty": true, "size": {"rows": rows, "cols": cols}}),
                -32602,
                format!("{size} rows and cols must be greater than 0"),
            ));
        }
        if face == Face::Spawn {
            let expected = "processHandle must not be empty".to_owned();
            cases.push((json!({"processHandle": ""}), -32600, expected));
        }
        for (changes, code, expected) in cases {
            let mut params = face.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = face.fails(client, params).await;
            assert_eq!(error.parts(), (code, &*expected));
        }
        let bad = face.about("p", json!({"size": {"rows": 0, "cols": 3}}));
        let error = client.fails(face.resize(), bad).await;
        let expected = format!("{size} rows and cols must be greater than 0");
        assert_eq!(error.parts(), (-32602, &*expected));
        // The name was never taken.
        assert_eq!(
            face.run(client, "p", "exit 3", json!({})).await.exit_code,
            3
        );
    })
    .await;
}

#[tokio::test]
async fn params_that_can_not_be_read() {
    everywhere(async |face, _, client| {
        let mut cases = vec![
            json!({"command": "ls"}),
            json!({"command": [1]}),
            json!({"env": {"A": 1}}),
            json!({"env": []}),
            json!({"tty": "yes"}),
            json!({"size": [1, 2]}),
            json!({"size": {"rows": -1, "cols": 1}}),
            json!({"size": {"rows": 70_000, "cols": 1}}),
            json!({"outputBytesCap": -1}),
            json!({"outputBytesCap": "1"}),
            json!({"timeoutMs": 1.5}),
            json!({"cwd": 7}),
        ];
        if face == Face::Spawn {
            cases.push(json!({"cwd": "relative/path"}));
            cases.push(json!({"cwd": null}));
            cases.push(json!({"processHandle": 1}));
        }
        for changes in cases {
            let mut params = face.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = face.fails(client, params).await;
            assert_eq!(error.code, -32600, "{changes}: {error:?}");
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        }
        for method in [face.start(), face.write(), face.resize(), face.kill()] {
            let error = client.fails(method, json!({})).await;
            assert_eq!(error.code, -32600, "{method}");
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
            let error = client.fails(method, json!([])).await;
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn programs_that_can_not_be_executed() {
    everywhere(async |face, server, client| {
        let what = match face {
            Face::Spawn => "failed to spawn process: ",
            Face::Command => "failed to spawn command: ",
        };
        let file = server.folder().join("no program");
        std::fs::write(&file, "x").expect("a file");
        for changes in [
            json!({"command": ["/no/such/program"]}),
            json!({"command": ["no-such-program"]}),
            json!({"command": [file]}),
            json!({"command": ["a\0b"]}),
            json!({"command": ["true"], "cwd": "/no/such/folder"}),
        ] {
            let mut params = face.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = face.fails(client, params).await;
            assert_eq!(error.code, -32603, "{changes}: {error:?}");
            assert!(error.message.starts_with(what), "{error:?}");
        }
        assert_eq!(
            face.run(client, "p", "exit 3", json!({})).await.exit_code,
            3
        );
    })
    .await;
}

#[tokio::test]
async fn commands_that_contradict_themselves() {
    let server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let cases = [
        (
            json!({"timeoutMs": 1, "disableTimeout": true}),
            -32602,
            "command/exec cannot set both timeoutMs and disableTimeout",
        ),
        (
            json!({"outputBytesCap": 1, "disableOutputCap": true}),
            -32602,
            "command/exec cannot set both outputBytesCap and disableOutputCap",
        ),
        (
            json!({"tty": true}),
            -32600,
            "command/exec tty or streaming requires a client-supplied processId",
        ),
        (
            json!({"streamStdin": true}),
            -32600,
            "command/exec tty or streaming requires a client-supplied processId",
        ),
        (
            json!({"streamStdoutStderr": true}),
            -32600,
            "command/exec tty or streaming requires a client-supplied processId",
        ),
    ];
    for (mut params, code, expected) in cases {
        params["command"] = json!(["true"]);
        let error = client.fails("command/exec", params).await;
        assert_eq!(error.parts(), (code, expected));
    }
}

#[tokio::test]
async fn nobody_is_killed_who_is_unknown() {
    everywhere(async |face, _, client| {
        let error = client.fails(face.kill(), face.about("H", json!({}))).await;
        assert_eq!(error.parts(), (-32600, &*face.unknown("H")));
        let error = client.fails("command/exec/what", json!({})).await;
        assert_eq!(error.parts(), (-32601, "unknown method: command/exec/what"));
    })
    .await;
}

#[tokio::test]
async fn names_may_be_long_but_not_of_any_length() {
    everywhere(async |face, _, client| {
        let long = "n".repeat(1024);
        let outcome = face.run(client, &long, "exit 4", json!({})).await;
        assert_eq!(outcome.exit_code, 4);
        let params = face.about(
            &format!("{long}n"),
            json!({"command": ["true"], "cwd": "/"}),
        );
        let error = client.fails(face.start(), params).await;
        let words = format!("{} must be at most 1024 bytes long", face.key());
        assert_eq!(error.parts(), (-32602, &*words));
    })
    .await;
}
