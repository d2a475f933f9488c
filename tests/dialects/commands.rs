//! Tests `command/exec`, whose response comes at the exit.

use serde_json::json;

use super::dialect::{Dialect, app_handshake, with_every_dialect};
use crate::{over_each_transport, unsandboxed_outpost};

const COMMAND: Dialect = Dialect::Command;

#[tokio::test]
async fn only_command_is_required() {
    over_each_transport(async |_, client| {
        app_handshake(client).await;
        let script = ["sh", "-c", "printf out; printf err >&2; exit 7"];
        let response = client
            .call("command/exec", json!({"command": script}))
            .await;
        assert_eq!(
            response,
            json!({"exitCode": 7, "stdout": "out", "stderr": "err"})
        );
    })
    .await;
}

#[tokio::test]
async fn every_released_param_is_accepted() {
    over_each_transport(async |_, client| {
        app_handshake(client).await;
        let all = json!({
            "cwd": "/", "env": {"FOO": "x", "BAR": null}, "tty": true, "streamStdin": false,
            "streamStdoutStderr": false, "size": {"rows": 40, "cols": 120},
            "outputBytesCap": 1_048_576, "disableOutputCap": false, "timeoutMs": 10_000,
            "disableTimeout": false, "sandboxPolicy": null, "permissionProfile": null, "more": 1,
        });
        let outcome = COMMAND
            .run(client, "p", "stty size; pwd; echo $FOO", all)
            .await;
        assert_eq!(outcome.exit_code, 0);
        assert_eq!(
            COMMAND.received_output(client, "p", "stdout"),
            "40 120\r\n/\r\nx\r\n"
        );
        let nothing = json!({
            "command": ["true"], "processId": null, "cwd": null, "env": null, "tty": null,
            "streamStdin": null, "streamStdoutStderr": null, "size": null, "outputBytesCap": null,
            "disableOutputCap": null, "timeoutMs": null, "disableTimeout": null,
            "sandboxPolicy": null, "permissionProfile": null,
        });
        assert_eq!(client.call("command/exec", nothing).await["exitCode"], 0);
    })
    .await;
}

#[tokio::test]
async fn working_directory_is_relative_to_the_servers() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let cwd = std::env::current_dir().expect("a working directory");
    let above = cwd.parent().expect("there is one above it").to_owned();
    let cases = [
        (json!({}), cwd.clone()),
        (json!({"cwd": "."}), cwd.clone()),
        (json!({"cwd": ".."}), above),
        (json!({"cwd": "/usr"}), "/usr".into()),
    ];
    for (params, expected) in cases {
        let mut params = params;
        params["command"] = json!(["pwd", "-P"]);
        let response = client.call("command/exec", params).await;
        let printed = response["stdout"].as_str().expect("a text").trim_end();
        assert_eq!(std::path::Path::new(printed), expected);
    }
}

#[tokio::test]
async fn commands_without_an_id_do_not_collide() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let mut requests = Vec::new();
    for number in 0..20 {
        let command = json!({"command": ["sh", "-c", format!("sleep 0.05; echo {number}")]});
        requests.push(client.request("command/exec", command).await);
    }
    // Ids that the server chooses don't collide with the client's.
    let named = COMMAND
        .begin(&client, "1", "sleep 0.1; exit 1", json!({}))
        .await;
    for (number, request) in requests.into_iter().enumerate() {
        let response = client.response(request).await.expect("a result");
        assert_eq!(response["stdout"], format!("{number}\n"));
    }
    assert_eq!(named.end(&client).await.exit_code, 1);
}

#[tokio::test]
async fn id_in_use_is_rejected_and_free_after_the_response() {
    over_each_transport(async |_, client| {
        app_handshake(client).await;
        for round in 0..20 {
            let more = json!({"streamStdin": true, "streamStdoutStderr": true});
            let script = format!("echo ready; read x; exit {round}");
            let run = COMMAND.begin(client, "X", &script, more).await;
            let error = COMMAND
                .call_fails(client, COMMAND.sh("X", "true", json!({})))
                .await;
            let expected = "duplicate active command/exec process id: \"X\"";
            assert_eq!(error.parts(), (-32600, expected));
            COMMAND.write_text(client, "X", "go\n").await;
            assert_eq!(run.end(client).await.exit_code, round);
            let error = client
                .call_fails("command/exec/terminate", json!({"processId": "X"}))
                .await;
            let expected = "no active command/exec for process id \"X\"";
            assert_eq!(error.parts(), (-32600, expected));
        }
    })
    .await;
}

#[tokio::test]
async fn id_alone_changes_nothing() {
    with_every_dialect(async |dialect, _, client| {
        let outcome = dialect
            .run(client, "p", "echo kept; echo err >&2", json!({}))
            .await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("kept\n", "err\n"));
        assert_eq!(dialect.deltas(client, "p"), [json!(null); 0]);
    })
    .await;
}
