//! What a process finds in its environment.

use outpost_testkit::{Client, Server};
use serde_json::{Value, json};

use super::face::{Face, introduce};
use crate::free;

async fn serving() -> (Server, Client) {
    let server = free()
        .env("EDITOR", "vi")
        .env("MY_TOKEN", "t")
        .env("OUTPOST_SECRET", "never")
        .start()
        .await;
    let client = server.connect().await;
    introduce(&client).await;
    (server, client)
}

async fn said(face: Face, client: &Client, env: Value) -> String {
    let script = "echo \"${EDITOR-unset} ${MY_TOKEN-unset} ${OUTPOST_SECRET-unset} ${A-unset}\"";
    let more = json!({"env": env});
    face.run(client, "p", script, more).await.stdout
}

#[tokio::test]
async fn a_spawned_process_has_the_servers_own_with_what_it_is_given_on_top() {
    let (_server, client) = serving().await;
    let spawn = Face::Spawn;
    assert_eq!(said(spawn, &client, json!({})).await, "vi t unset unset\n");
    let env = json!({"EDITOR": null, "A": "b", "NEVER_WAS": null});
    assert_eq!(said(spawn, &client, env).await, "unset t unset b\n");
    let env = json!({"EDITOR": "ed", "OUTPOST_SECRET": "mine"});
    assert_eq!(said(spawn, &client, env).await, "ed t mine unset\n");
}

#[tokio::test]
async fn a_command_has_what_the_policy_gives_with_what_it_is_given_on_top() {
    let (_server, client) = serving().await;
    let command = Face::Command;
    assert_eq!(
        said(command, &client, json!({})).await,
        "vi unset unset unset\n"
    );
    let env = json!({"EDITOR": null, "A": "b", "MY_TOKEN": "given"});
    assert_eq!(said(command, &client, env).await, "unset given unset b\n");
}

#[tokio::test]
async fn programs_are_searched_where_the_child_would() {
    let (server, client) = serving().await;
    let folder = server.folder().join("bin");
    std::fs::create_dir(&folder).expect("a folder");
    let program = folder.join("greet");
    std::fs::write(&program, "#!/bin/sh\necho hello\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it can be made executable");
    let params = json!({"command": ["greet"], "env": {"PATH": folder}});
    assert_eq!(
        client.call("command/exec", params).await["stdout"],
        "hello\n"
    );
}
