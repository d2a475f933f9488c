//! Tests the first exec protocol: `command/exec` with `argv`.

use std::time::Instant;

use outpost_testkit::{Client, Server, TestTag, Transport, base64, programs, unbase64};
use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::{over_each_transport, unsandboxed_outpost};

fn sh(client: &Client, id: &str, script: &str, tty: bool) -> Value {
    json!({
        "processId": id, "argv": ["/bin/sh", "-c", script], "cwd": "/tmp",
        "env": {"PATH": "/usr/bin:/bin", TestTag::VARIABLE: client.tag().as_str()},
        "tty": tty, "outputBytesCap": 4096, "arg0": null,
    })
}

async fn start(client: &Client, id: &str, script: &str, tty: bool) -> Value {
    client
        .call("command/exec", sh(client, id, script, tty))
        .await
}

fn received_output(messages: &[std::sync::Arc<Value>], id: &str, stream: &str) -> String {
    let deltas = messages.iter().filter(|message| {
        message["method"] == "command/exec/outputDelta"
            && message["params"]["processId"] == id
            && message["params"]["stream"] == stream
    });
    let bytes: Vec<_> = deltas
        .map(|message| unbase64(&message["params"]["chunk"]))
        .collect();
    String::from_utf8_lossy(&bytes.concat()).into_owned()
}

async fn wait_output(client: &Client, id: &str, text: &str) {
    client
        .until(&format!("{text:?} of {id}"), |seen| {
            received_output(&seen.messages, id, "stdout")
                .contains(text)
                .then_some(())
        })
        .await;
}

/// Waits for the exit, checks that nothing follows it, and returns its params.
async fn exited(client: &Client, id: &str) -> Value {
    let is_exit = |message: &Value| {
        message["method"] == "command/exec/exited" && message["params"]["processId"] == id
    };
    let (at, params) = client
        .until(&format!("the exit of {id}"), |seen| {
            let at = seen.messages.iter().position(|message| is_exit(message))?;
            Some((at, seen.messages[at]["params"].clone()))
        })
        .await;
    let later = &client.received()[at..];
    assert_eq!(
        received_output(later, id, "stdout") + &received_output(later, id, "stderr"),
        ""
    );
    params
}

async fn on_every_transport(test: impl AsyncFn(&Server, &Client)) {
    over_each_transport(async |server, client| {
        client.handshake().await;
        test(server, client).await;
    })
    .await;
}

#[tokio::test]
async fn start_is_answered_before_its_events() {
    on_every_transport(async |_, client| {
        let script = "echo $$; read x; echo got:$x; exit 6";
        let response = start(client, "2001", script, true).await;
        let pid = &response["pid"];
        assert_eq!(
            response,
            json!({
                "processId": "2001", "pid": pid, "running": true, "exitCode": null,
                "stdout": null, "stderr": null,
            })
        );
        wait_output(client, "2001", "\r\n").await;
        assert_eq!(
            received_output(&client.received(), "2001", "stdout"),
            format!("{pid}\r\n")
        );
        let write = json!({"processId": "2001", "chunk": base64("hey\n")});
        let accepted = client.call("command/exec/write", write).await;
        assert_eq!(accepted, json!({"accepted": true}));
        let exit = exited(client, "2001").await;
        assert_eq!(exit, json!({"processId": "2001", "exitCode": 6}));
        assert!(
            received_output(&client.received(), "2001", "stdout").ends_with("hey\r\ngot:hey\r\n")
        );
    })
    .await;
}

#[tokio::test]
async fn output_is_sent_per_stream_and_uncut() {
    on_every_transport(async |_, client| {
        // Far more than the cap, which limits only what is retained.
        let script = "head -c 100000 /dev/zero | tr '\\0' x; echo err >&2; exit 3";
        start(client, "p", script, false).await;
        assert_eq!(exited(client, "p").await["exitCode"], 3);
        let received = client.received();
        assert_eq!(received_output(&received, "p", "stdout").len(), 100_000);
        assert_eq!(received_output(&received, "p", "stderr"), "err\n");
        let delta = received
            .iter()
            .find(|message| message["method"] == "command/exec/outputDelta");
        let members = delta.expect("a delta")["params"].as_object().cloned();
        let names: Vec<_> = members.expect("params").keys().cloned().collect();
        assert_eq!(names, ["chunk", "processId", "stream"]);
    })
    .await;
}

#[tokio::test]
async fn environment_is_exact_and_arg0_is_kept() {
    on_every_transport(async |_, client| {
        let params = json!({
            "processId": "p", "argv": ["/usr/bin/env"], "cwd": "/", "env": {"ONLY": "this"},
        });
        client.call("command/exec", params).await;
        exited(client, "p").await;
        assert_eq!(
            received_output(&client.received(), "p", "stdout"),
            "ONLY=this\n"
        );
        let params = json!({
            "processId": "q", "argv": ["/bin/sh", "-c", "echo $0; pwd"], "cwd": "/",
            "arg0": "another", "env": {},
        });
        client.call("command/exec", params).await;
        assert_eq!(exited(client, "q").await["exitCode"], 0);
        assert_eq!(
            received_output(&client.received(), "q", "stdout"),
            "another\n/\n"
        );
    })
    .await;
}

#[tokio::test]
async fn errors_have_their_fixed_messages() {
    on_every_transport(async |_, client| {
        start(client, "p", "echo ready; exec sleep 1000", false).await;
        wait_output(client, "p", "ready").await;
        let error = client
            .call_fails("command/exec", sh(client, "p", "true", false))
            .await;
        assert_eq!(error.parts(), (-32600, "process p already exists"));
        let chunk = |id: &str| json!({"processId": id, "chunk": base64("x")});
        let error = client.call_fails("command/exec/write", chunk("p")).await;
        assert_eq!(error.parts(), (-32600, "stdin is closed for process p"));
        let error = client.call_fails("command/exec/write", chunk("H")).await;
        assert_eq!(error.parts(), (-32600, "unknown process id H"));
        let error = client
            .call_fails(
                "command/exec/write",
                json!({"processId": "p", "chunk": "!"}),
            )
            .await;
        assert_eq!(error.code, -32600);
        assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        let params_for = |id: &str| json!({"processId": id});
        let response = client.call("command/exec/terminate", params_for("H")).await;
        assert_eq!(response, json!({"running": false}));
        let response = client.call("command/exec/terminate", params_for("p")).await;
        assert_eq!(response, json!({"running": true}));
        assert_eq!(exited(client, "p").await["exitCode"], 137);
        let response = client.call("command/exec/terminate", params_for("p")).await;
        assert_eq!(response, json!({"running": false}));
        let error = client.call_fails("command/exec/write", chunk("p")).await;
        assert_eq!(error.parts(), (-32600, "unknown process id p"));

        let mut empty = sh(client, "q", "true", false);
        empty["argv"] = json!([]);
        let error = client.call_fails("command/exec", empty).await;
        assert_eq!(error.parts(), (-32602, "argv must not be empty"));
        let mut relative = sh(client, "q", "true", false);
        relative["cwd"] = json!("tmp");
        let error = client.call_fails("command/exec", relative).await;
        assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        let mut missing = sh(client, "q", "true", false);
        missing["argv"] = json!(["/no/such/program"]);
        let error = client.call_fails("command/exec", missing).await;
        assert_eq!(error.code, -32603, "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn first_call_decides_the_meaning_of_command_exec() {
    let server = unsandboxed_outpost().start().await;
    let client = server.client().await;
    let command = Dialect::Command;
    assert_eq!(
        command
            .run(&client, "p", "exit 3", json!({}))
            .await
            .exit_code,
        3
    );
    let error = client
        .call_fails("command/exec/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(error.parts(), (-32600, &*command.unknown("p")));
    // A failed v0 call counts too.
    let broken = json!({"processId": "p", "argv": [], "cwd": "/"});
    client.call_fails("command/exec", broken).await;
    let response = client
        .call("command/exec/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(response, json!({"running": false}));
    let error = client
        .call_fails("command/exec", json!({"command": ["true"]}))
        .await;
    assert_eq!(error.code, -32600);
    assert!(
        error.message.starts_with("Invalid request: missing field"),
        "{error:?}"
    );
    let resize = json!({"processId": "p", "size": {"rows": 1, "cols": 1}});
    let error = client.call_fails("command/exec/resize", resize).await;
    assert_eq!(
        error.parts(),
        (
            -32601,
            "exec-server stub does not implement `command/exec/resize` yet"
        )
    );
    // Only `command/exec` methods are affected.
    client.call("config/read", json!({})).await;
    // Another connection is not affected.
    let other = server.client().await;
    assert_eq!(
        command
            .run(&other, "p", "exit 4", json!({}))
            .await
            .exit_code,
        4
    );
}

#[tokio::test]
async fn end_of_input_kills_remaining_processes() {
    let mut server = unsandboxed_outpost().on(Transport::Stdio).start().await;
    let client = server.client().await;
    for (number, script) in [programs::DAEMON, programs::IGNORES_TERM]
        .iter()
        .enumerate()
    {
        let id = number.to_string();
        start(&client, &id, script, number == 1).await;
        wait_output(&client, &id, "ready").await;
    }
    let since = Instant::now();
    client.end_input().await;
    assert_eq!(server.wait().await.code, Some(0));
    assert_eq!(server.tag().living(), [0; 0]);
    assert!(since.elapsed().as_secs() < 3);
}

#[tokio::test]
async fn held_pipe_does_not_delay_the_exit_forever() {
    let server = unsandboxed_outpost().start().await;
    let client = server.client().await;
    let since = Instant::now();
    start(&client, "p", programs::HOLDS_THE_PIPE, false).await;
    assert_eq!(exited(&client, "p").await["exitCode"], 0);
    assert!(since.elapsed().as_millis() > 1900);
    assert_eq!(
        received_output(&client.received(), "p", "stdout"),
        "ready\n"
    );
}
