//! Faces beside each other, and connections that don't see each other.

use outpost_testkit::{base64, sh};
use serde_json::json;

use super::face::{Face, introduce};
use crate::{free, over_each_transport};

#[tokio::test]
async fn one_client_may_mix_faces_and_names_do_not_collide() {
    over_each_transport(async |_, client| {
        let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
        client.call("initialize", introduction).await;
        client.notify("initialized", json!({})).await;
        client.start(sh("p", "read x; exit 1").stdin()).await;
        let more = json!({"streamStdin": true});
        let spawned = Face::Spawn
            .begin(client, "p", "read x; exit 2", more.clone())
            .await;
        let command = Face::Command
            .begin(client, "p", "read x; exit 3", more)
            .await;
        let v0 = json!({
            "processId": "p", "argv": ["sh", "-c", "read x; exit 4"], "cwd": "/tmp",
            "env": {"PATH": "/usr/bin:/bin"}, "tty": true,
        });
        // From here on `command/exec/write` is about another namespace, so this comes first.
        Face::Command.types(client, "p", "\n").await;
        assert_eq!(command.end(client).await.exit_code, 3);
        client.call("command/exec", v0).await;
        let chunk = json!({"processId": "p", "chunk": base64("\n")});
        client.call("command/exec/write", chunk).await;
        Face::Spawn.types(client, "p", "\n").await;
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
async fn what_belongs_to_a_connection_is_not_among_the_sessions_processes() {
    let server = free().start().await;
    let client = server.client().await;
    let command = json!({
        "command": ["sleep", "1000"], "processId": "c", "disableTimeout": true,
    });
    client.request("command/exec", command).await;
    server.mark().alive(2).await;
    assert_eq!(client.listed("c").await, None);
    assert!(!client.terminate("c").await);
    server.mark().alive(2).await;
}

#[tokio::test]
async fn connections_do_not_see_each_other() {
    let server = free().start().await;
    let one = server.connect().await;
    introduce(&one).await;
    let two = server.connect().await;
    introduce(&two).await;
    for face in [Face::Spawn, Face::Command] {
        let more = json!({"streamStdin": true, "streamStdoutStderr": true});
        let first = face
            .begin(&one, "p", "read x; echo $x; exit 1", more.clone())
            .await;
        for method in [face.write(), face.kill()] {
            let params = face.about("p", json!({"deltaBase64": ""}));
            let error = two.fails(method, params).await;
            assert_eq!(error.parts(), (-32600, &*face.unknown("p")));
        }
        let second = face.begin(&two, "p", "read x; echo $x; exit 2", more).await;
        face.types(&one, "p", "one\n").await;
        face.types(&two, "p", "two\n").await;
        assert_eq!(first.end(&one).await.exit_code, 1);
        assert_eq!(second.end(&two).await.exit_code, 2);
        assert_eq!(face.told(&one, "p", "stdout"), "one\n");
        assert_eq!(face.told(&two, "p", "stdout"), "two\n");
    }
}

#[tokio::test]
async fn many_processes_leave_the_server_as_it_was() {
    let server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    for face in [Face::Spawn, Face::Command] {
        let mut before = 0;
        for round in 0..150 {
            assert_eq!(
                face.run(&client, "p", "echo x", json!({})).await.stdout,
                "x\n"
            );
            if round == 20 {
                before = server.vitals().open_files();
            }
        }
        server.mark().alive(1).await;
        // One or two may be kept for the next process, and there may be more of these now.
        outpost_testkit::patience::seen("the descriptors of an idle server", || {
            (server.vitals().open_files() < before + 10).then_some(())
        })
        .await;
    }
}
