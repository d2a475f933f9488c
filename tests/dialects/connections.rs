//! Tests several dialects on one connection, and that connections are isolated.

use outpost_testkit::{base64, sh};
use serde_json::json;

use super::dialect::{Dialect, app_handshake};
use crate::{over_each_transport, unsandboxed_outpost};

#[tokio::test]
async fn dialects_mix_on_one_connection_without_id_collisions() {
    over_each_transport(async |_, client| {
        let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
        client.call("initialize", introduction).await;
        client.notify("initialized", json!({})).await;
        client.start(sh("p", "read x; exit 1").stdin()).await;
        let more = json!({"streamStdin": true});
        let spawned = Dialect::Spawn
            .begin(client, "p", "read x; exit 2", more.clone())
            .await;
        let command = Dialect::Command
            .begin(client, "p", "read x; exit 3", more)
            .await;
        let v0 = json!({
            "processId": "p", "argv": ["sh", "-c", "read x; exit 4"], "cwd": "/tmp",
            "env": {"PATH": "/usr/bin:/bin"}, "tty": true,
        });
        // First, because `command/exec/write` refers to v0 processes from here on.
        Dialect::Command.write_text(client, "p", "\n").await;
        assert_eq!(command.end(client).await.exit_code, 3);
        client.call("command/exec", v0).await;
        let chunk = json!({"processId": "p", "chunk": base64("\n")});
        client.call("command/exec/write", chunk).await;
        Dialect::Spawn.write_text(client, "p", "\n").await;
        assert_eq!(spawned.end(client).await.exit_code, 2);
        client.write("p", "\n", "w").await;
        assert_eq!(client.exited("p").await.code(), 1);
        let code = client
            .until("the exit of the fourth", |seen| {
                let mut messages = seen.messages.iter();
                let exited = messages.find(|message| message["method"] == "command/exec/exited")?;
                exited["params"]["exitCode"].as_i64()
            })
            .await;
        assert_eq!(code, 4);
    })
    .await;
}

#[tokio::test]
async fn connection_processes_are_not_in_the_session() {
    let server = unsandboxed_outpost().start().await;
    let client = server.client().await;
    let command = json!({
        "command": ["sleep", "1000"], "processId": "c", "disableTimeout": true,
    });
    client.request("command/exec", command).await;
    server.tag().alive(2).await;
    assert_eq!(client.listed("c").await, None);
    assert!(!client.terminate("c").await);
    server.tag().alive(2).await;
}

#[tokio::test]
async fn connections_are_isolated() {
    let server = unsandboxed_outpost().start().await;
    let one = server.connect().await;
    app_handshake(&one).await;
    let two = server.connect().await;
    app_handshake(&two).await;
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let more = json!({"streamStdin": true, "streamStdoutStderr": true});
        let first = dialect
            .begin(&one, "p", "read x; echo $x; exit 1", more.clone())
            .await;
        for method in [dialect.write(), dialect.kill()] {
            let params = dialect.params_for("p", json!({"deltaBase64": ""}));
            let error = two.call_fails(method, params).await;
            assert_eq!(error.parts(), (-32600, &*dialect.unknown("p")));
        }
        let second = dialect
            .begin(&two, "p", "read x; echo $x; exit 2", more)
            .await;
        dialect.write_text(&one, "p", "one\n").await;
        dialect.write_text(&two, "p", "two\n").await;
        assert_eq!(first.end(&one).await.exit_code, 1);
        assert_eq!(second.end(&two).await.exit_code, 2);
        assert_eq!(dialect.received_output(&one, "p", "stdout"), "one\n");
        assert_eq!(dialect.received_output(&two, "p", "stdout"), "two\n");
    }
}

#[tokio::test]
async fn many_processes_leave_no_resources() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let mut before = 0;
        for round in 0..150 {
            assert_eq!(
                dialect.run(&client, "p", "echo x", json!({})).await.stdout,
                "x\n"
            );
            if round == 20 {
                before = server.stats().open_files();
            }
        }
        server.tag().alive(1).await;
        // Descriptors held ready for the next process may have become a few more.
        outpost_testkit::deadline::poll_until("the descriptors of an idle server", || {
            (server.stats().open_files() < before + 10).then_some(())
        })
        .await;
    }
}
