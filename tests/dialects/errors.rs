//! Tests rejected requests: codes and messages.

use serde_json::{Value, json};

use super::dialect::{Dialect, app_handshake, with_every_dialect};
use crate::{over_each_transport, unsandboxed_outpost};

#[tokio::test]
async fn requests_need_initialize_but_not_initialized() {
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
                let error = client.call_fails(method, params).await;
                assert_eq!(error.parts(), (-32600, "Not initialized"), "{method}");
            }
        }
        app_handshake(client).await;
        for dialect in [Dialect::Spawn, Dialect::Command] {
            assert_eq!(
                dialect
                    .run(client, "p", "exit 1", json!({}))
                    .await
                    .exit_code,
                1
            );
        }
    })
    .await;
}

#[tokio::test]
async fn invalid_starts_are_rejected() {
    with_every_dialect(async |dialect, _, client| {
        let start = dialect.start();
        let size = match dialect {
            Dialect::Spawn => "process size",
            Dialect::Command => "command/exec size",
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
        if dialect == Dialect::Spawn {
            let expected = "processHandle must not be empty".to_owned();
            cases.push((json!({"processHandle": ""}), -32600, expected));
        }
        for (changes, code, expected) in cases {
            let mut params = dialect.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = dialect.call_fails(client, params).await;
            assert_eq!(error.parts(), (code, &*expected));
        }
        let bad = dialect.params_for("p", json!({"size": {"rows": 0, "cols": 3}}));
        let error = client.call_fails(dialect.resize(), bad).await;
        let expected = format!("{size} rows and cols must be greater than 0");
        assert_eq!(error.parts(), (-32602, &*expected));
        // The id was not taken.
        assert_eq!(
            dialect
                .run(client, "p", "exit 3", json!({}))
                .await
                .exit_code,
            3
        );
    })
    .await;
}

#[tokio::test]
async fn unparsable_params_are_rejected() {
    with_every_dialect(async |dialect, _, client| {
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
        if dialect == Dialect::Spawn {
            cases.push(json!({"cwd": "relative/path"}));
            cases.push(json!({"cwd": null}));
            cases.push(json!({"processHandle": 1}));
        }
        for changes in cases {
            let mut params = dialect.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = dialect.call_fails(client, params).await;
            assert_eq!(error.code, -32600, "{changes}: {error:?}");
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        }
        for method in [
            dialect.start(),
            dialect.write(),
            dialect.resize(),
            dialect.kill(),
        ] {
            let error = client.call_fails(method, json!({})).await;
            assert_eq!(error.code, -32600, "{method}");
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
            let error = client.call_fails(method, json!([])).await;
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn failed_execs_are_reported() {
    with_every_dialect(async |dialect, server, client| {
        let what = match dialect {
            Dialect::Spawn => "failed to spawn process: ",
            Dialect::Command => "failed to spawn command: ",
        };
        let file = server.dir().join("no program");
        std::fs::write(&file, "x").expect("a file");
        for changes in [
            json!({"command": ["/no/such/program"]}),
            json!({"command": ["no-such-program"]}),
            json!({"command": [file]}),
            json!({"command": ["a\0b"]}),
            json!({"command": ["true"], "cwd": "/no/such/folder"}),
        ] {
            let mut params = dialect.sh("p", "true", json!({}));
            for (name, value) in changes.as_object().expect("an object") {
                params[name] = value.clone();
            }
            let error = dialect.call_fails(client, params).await;
            assert_eq!(error.code, -32603, "{changes}: {error:?}");
            assert!(error.message.starts_with(what), "{error:?}");
        }
        assert_eq!(
            dialect
                .run(client, "p", "exit 3", json!({}))
                .await
                .exit_code,
            3
        );
    })
    .await;
}

#[tokio::test]
async fn contradictory_commands_are_rejected() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
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
        let error = client.call_fails("command/exec", params).await;
        assert_eq!(error.parts(), (code, expected));
    }
}

#[tokio::test]
async fn unknown_process_cannot_be_killed() {
    with_every_dialect(async |dialect, _, client| {
        let error = client
            .call_fails(dialect.kill(), dialect.params_for("H", json!({})))
            .await;
        assert_eq!(error.parts(), (-32600, &*dialect.unknown("H")));
        let error = client.call_fails("command/exec/what", json!({})).await;
        let expected = "Invalid request: unknown variant `command/exec/what`, expected one of ";
        assert!(
            error.code == -32600 && error.message.starts_with(expected),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn ids_are_bounded() {
    with_every_dialect(async |dialect, _, client| {
        let long = "n".repeat(1024);
        let outcome = dialect.run(client, &long, "exit 4", json!({})).await;
        assert_eq!(outcome.exit_code, 4);
        let params = dialect.params_for(
            &format!("{long}n"),
            json!({"command": ["true"], "cwd": "/"}),
        );
        let error = client.call_fails(dialect.start(), params).await;
        let message = format!("{} must be at most 1024 bytes long", dialect.key());
        assert_eq!(error.parts(), (-32602, &*message));
    })
    .await;
}
