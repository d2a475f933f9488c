//! Tests the environment of a process.

use outpost_testkit::{Client, Server};
use serde_json::{Value, json};

use super::dialect::{Dialect, app_handshake};
use crate::unconfined_outpost;

async fn server_and_client() -> (Server, Client) {
    let server = unconfined_outpost()
        .env("EDITOR", "vi")
        .env("MY_TOKEN", "t")
        .env("OUTPOST_SECRET", "never")
        .start()
        .await;
    let client = server.connect().await;
    app_handshake(&client).await;
    (server, client)
}

async fn expanded_variables(dialect: Dialect, client: &Client, env: Value) -> String {
    let script = "echo \"${EDITOR-unset} ${MY_TOKEN-unset} ${OUTPOST_SECRET-unset} ${A-unset}\"";
    let more = json!({"env": env});
    dialect.run(client, "p", script, more).await.stdout
}

#[tokio::test]
async fn spawn_inherits_the_servers_environment() {
    let (_server, client) = server_and_client().await;
    let spawn = Dialect::Spawn;
    assert_eq!(
        expanded_variables(spawn, &client, json!({})).await,
        "vi t unset unset\n"
    );
    let env = json!({"EDITOR": null, "A": "b", "NEVER_WAS": null});
    assert_eq!(
        expanded_variables(spawn, &client, env).await,
        "unset t unset b\n"
    );
    let env = json!({"EDITOR": "ed", "OUTPOST_SECRET": "mine"});
    assert_eq!(
        expanded_variables(spawn, &client, env).await,
        "ed t mine unset\n"
    );
}

#[tokio::test]
async fn command_environment_follows_the_policy() {
    let (_server, client) = server_and_client().await;
    let command = Dialect::Command;
    assert_eq!(
        expanded_variables(command, &client, json!({})).await,
        "vi unset unset unset\n"
    );
    let env = json!({"EDITOR": null, "A": "b", "MY_TOKEN": "given"});
    assert_eq!(
        expanded_variables(command, &client, env).await,
        "unset given unset b\n"
    );
}

#[tokio::test]
async fn program_lookup_uses_the_childs_path() {
    let (server, client) = server_and_client().await;
    let dir = server.dir().join("bin");
    std::fs::create_dir(&dir).expect("a directory");
    let program = dir.join("greet");
    std::fs::write(&program, "#!/bin/sh\necho hello\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it can be made executable");
    let params = json!({"command": ["greet"], "env": {"PATH": dir}});
    assert_eq!(
        client.call("command/exec", params).await["stdout"],
        "hello\n"
    );
}
