//! `command/exec`: one call, answered at the exit.

use serde_json::json;

use super::face::{Face, everywhere, introduce};
use crate::{free, over_each_transport};

const COMMAND: Face = Face::Command;

#[tokio::test]
async fn only_a_command_is_required() {
    over_each_transport(async |_, client| {
        introduce(client).await;
        let script = ["sh", "-c", "printf out; printf err >&2; exit 7"];
        let answer = client
            .call("command/exec", json!({"command": script}))
            .await;
        assert_eq!(
            answer,
            json!({"exitCode": 7, "stdout": "out", "stderr": "err"})
        );
    })
    .await;
}

#[tokio::test]
async fn everything_a_client_may_send_is_understood() {
    over_each_transport(async |_, client| {
        introduce(client).await;
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
        assert_eq!(COMMAND.told(client, "p", "stdout"), "40 120\r\n/\r\nx\r\n");
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
async fn a_working_directory_is_seen_from_the_servers() {
    let server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let here = std::env::current_dir().expect("a working directory");
    let above = here.parent().expect("there is one above it").to_owned();
    let cases = [
        (json!({}), here.clone()),
        (json!({"cwd": "."}), here.clone()),
        (json!({"cwd": ".."}), above),
        (json!({"cwd": "/usr"}), "/usr".into()),
    ];
    for (params, expected) in cases {
        let mut params = params;
        params["command"] = json!(["pwd", "-P"]);
        let answer = client.call("command/exec", params).await;
        let said = answer["stdout"].as_str().expect("a text").trim_end();
        assert_eq!(std::path::Path::new(said), expected);
    }
}

#[tokio::test]
async fn commands_without_a_name_are_in_nobodys_way() {
    let server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let mut requests = Vec::new();
    for number in 0..20 {
        let command = json!({"command": ["sh", "-c", format!("sleep 0.05; echo {number}")]});
        requests.push(client.request("command/exec", command).await);
    }
    // Their names, whatever they are, are not the client's.
    let named = COMMAND
        .begin(&client, "1", "sleep 0.1; exit 1", json!({}))
        .await;
    for (number, request) in requests.into_iter().enumerate() {
        let answer = client.answer(request).await.expect("a result");
        assert_eq!(answer["stdout"], format!("{number}\n"));
    }
    assert_eq!(named.end(&client).await.exit_code, 1);
}

#[tokio::test]
async fn a_name_in_use_is_refused_and_free_after_the_answer() {
    over_each_transport(async |_, client| {
        introduce(client).await;
        for round in 0..20 {
            let more = json!({"streamStdin": true, "streamStdoutStderr": true});
            let script = format!("echo ready; read x; exit {round}");
            let run = COMMAND.begin(client, "X", &script, more).await;
            let error = COMMAND
                .fails(client, COMMAND.sh("X", "true", json!({})))
                .await;
            let expected = "duplicate active command/exec process id: \"X\"";
            assert_eq!(error.parts(), (-32600, expected));
            COMMAND.types(client, "X", "go\n").await;
            assert_eq!(run.end(client).await.exit_code, round);
            let error = client
                .fails("command/exec/terminate", json!({"processId": "X"}))
                .await;
            let expected = "no active command/exec for process id \"X\"";
            assert_eq!(error.parts(), (-32600, expected));
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_alone_changes_nothing() {
    everywhere(async |face, _, client| {
        let outcome = face
            .run(client, "p", "echo kept; echo err >&2", json!({}))
            .await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("kept\n", "err\n"));
        assert_eq!(face.deltas(client, "p"), [json!(null); 0]);
    })
    .await;
}
