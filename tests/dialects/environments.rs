//! Tests the environment of a process.

use outpost_testkit::{Client, Server};
use serde_json::{Value, json};

use super::dialect::{Dialect, app_handshake};
use crate::unsandboxed_outpost;

async fn server_and_client() -> (Server, Client) {
    let server = unsandboxed_outpost()
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
}

#[tokio::test]
async fn withheld_variables_reach_no_dialect() {
    let names = [
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
        "OUTPOST_SECRET",
    ];
    let mut launch = unsandboxed_outpost();
    let mut env = serde_json::Map::new();
    for name in names {
        for name in [name.to_owned(), name.to_lowercase()] {
            launch = launch.env(&name, "inherited");
            env.insert(name, json!("requested"));
        }
    }
    env.insert("KEPT".to_owned(), json!("kept"));
    let server = launch.start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let script = "env | grep -e inherited -e requested -e kept";
        for tty in [false, true] {
            let more = json!({"env": env, "tty": tty, "streamStdoutStderr": true});
            let id = format!("p{tty}");
            dialect.run(&client, &id, script, more).await;
            let found = dialect.received_output(&client, &id, "stdout");
            assert_eq!(found.trim(), "KEPT=kept", "{dialect:?} {tty}");
        }
    }
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
