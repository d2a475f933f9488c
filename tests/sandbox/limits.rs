//! Tests `limits` and `endedBy` of sandboxed processes.

use serde_json::json;

use super::SandboxDirs;
use crate::process::{exit, with_limit};
use crate::ready;

#[tokio::test]
async fn rlimits_are_those_of_the_program() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let limits = json!({"openFiles": 77, "cpuSeconds": 1, "fileSizeBytes": 4096});
    let start = |id, script| dirs.script(id, script).with("limits", limits.clone());
    let log = client
        .run(start("p", "ulimit -n; ulimit -t; ulimit -f"))
        .await;
    assert_eq!(log.stdout(), "77\n1\n8\n", "{}", log.stderr());
    client.start(start("busy", "while :; do :; done")).await;
    let busy = exit(&client, "busy").await;
    let told = (&busy["code"], &busy["endedBy"]);
    assert_eq!(told, (&json!(152), &json!("cpuLimit")));
    client
        .start(start("large", "head -c 10000 /dev/zero > large"))
        .await;
    exit(&client, "large").await;
    let written = std::fs::metadata(dirs.workspace().join("large"));
    assert_eq!(written.expect("it exists").len(), 4096);
}

#[tokio::test]
async fn usage_is_that_of_the_program_or_unknown() {
    let (_server, client) = ready().await;
    let info = client.call("environment/info", json!({})).await;
    let dirs = SandboxDirs::new();
    let script = "sh -c 'ulimit -t 1; while :; do :; done'; exit 3";
    client.start(dirs.script("p", script)).await;
    let exit = exit(&client, "p").await;
    assert_eq!(
        (&exit["code"], &exit["endedBy"]),
        (&json!(3), &json!("exit"))
    );
    match exit["usage"]["cpuMs"].as_u64() {
        Some(cpu) => assert!((500..60_000).contains(&cpu), "{exit}"),
        None => assert_ne!(info["processTrees"], "cgroup", "{exit}"),
    }
}

#[tokio::test]
async fn tree_beyond_its_memory_is_killed() {
    with_limit("memoryBytes", async |server, client| {
        let dirs = SandboxDirs::new();
        let limits = json!({"memoryBytes": 64 << 20});
        let start = dirs.script("p", "sleep 1000 & tail /dev/zero; exit 0");
        client.start(start.with("limits", limits)).await;
        let exit = exit(client, "p").await;
        let told = (&exit["code"], &exit["endedBy"]);
        assert_eq!(told, (&json!(137), &json!("oom")));
        server.tag().alive(1).await;
    })
    .await;
}

#[tokio::test]
async fn program_has_as_many_processes_as_without_a_sandbox() {
    with_limit("processes", async |_, client| {
        let dirs = SandboxDirs::new();
        let script = "sleep 1000 & sleep 1000 & echo two; sleep 1000 & echo three";
        let start = dirs.script("p", script);
        client
            .start(start.with("limits", json!({"processes": 3})))
            .await;
        let log = client.exited("p").await;
        assert_eq!(log.stdout(), "two\n", "{}", log.stderr());
        client.terminate_with("p", json!({"tree": true})).await;
    })
    .await;
}
