//! Tests `outpost mcp list`.

use serde_json::{Value, json};

use super::{McpConfig, everything, text, time};
use crate::outpost;

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn servers_are_listed_with_status_and_reason() {
    let server = outpost().start().await;
    let config = McpConfig::with(&[
        ("everything", &everything(), ""),
        ("time", &time(), "environment = \"remote\""),
        ("broken", &sh("echo oh no >&2; exit 3"), ""),
        (
            "garbage",
            &sh("echo what; exec sleep 1000"),
            "startup_timeout_sec = 1",
        ),
        ("off", &sh("exit"), "enabled = false"),
    ]);
    let listed = config
        .run(&["mcp", "list", "--on", &server.urls()[0]])
        .await;
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let stdout = text(&listed.stdout);
    let lines: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "STATUS", "WHERE", "TOOLS"]);
    assert_eq!(lines[1], ["broken", "failed", "local", "-"]);
    assert_eq!(lines[2], ["everything", "ready", "local", "13"]);
    assert_eq!(lines[3], ["garbage", "failed", "local", "-"]);
    assert_eq!(lines[4], ["off", "disabled", "local", "-"]);
    assert_eq!(lines[5], ["time", "ready", "remote", "2"]);
    for why in [
        "broken: the server exited with code 3; last line on stderr: oh no",
        "garbage: the server was not ready within 1s; it wrote 1 line that is not a message: what",
    ] {
        assert!(stdout.lines().any(|line| line == why), "{why}: {stdout}");
    }
    assert!(!stdout.contains('\x1b'), "colours are for terminals");

    let listed = config
        .run(&["mcp", "list", "--json", "--on", &server.urls()[0]])
        .await;
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed[1]["server"]["protocolVersion"], "2025-11-25");
    assert_eq!(listed[1]["tools"].as_array().expect("a list").len(), 13);
    assert!(
        !listed[1]["resources"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
    assert_eq!(listed[4]["server"]["protocolVersion"], "2026-07-28");
    assert_eq!(listed[0]["status"], "failed");
    assert_eq!(listed[3]["status"], "disabled");
    for without in [0, 2, 3] {
        for list in ["tools", "resources", "resourceTemplates"] {
            assert_eq!(listed[without][list], json!([]), "{without} {list}");
        }
    }
    assert!(
        listed[0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("oh no"))
    );
}

#[tokio::test]
async fn required_server_decides_the_exit_code() {
    let config = McpConfig::with(&[("broken", &sh("exit 3"), "required = true")]);
    let listed = config.run(&["mcp", "list"]).await;
    assert_eq!(listed.status.code(), Some(1), "{listed:?}");
}

#[tokio::test]
async fn remote_server_needs_a_configured_executor() {
    let config = McpConfig::with(&[("time", &time(), "environment = \"remote\"")]);
    let listed = config.run(&["mcp", "list"]).await;
    let stdout = text(&listed.stdout);
    assert!(
        stdout.contains("MCP server time has environment = \"remote\""),
        "{stdout}"
    );

    let server = outpost().start().await;
    let mut command = config.command(&["mcp", "list"]);
    command.env("OUTPOST_MCP_ON", &server.urls()[0]);
    let listed = command.output().await.expect("it runs");
    assert!(text(&listed.stdout).contains("ready"), "{listed:?}");
}

#[tokio::test]
async fn errors_name_the_server_and_empty_config_is_noted() {
    let config = McpConfig::with(&[("docs", &sh("exit"), "environment = \"moon\"")]);
    let listed = config.run(&["mcp", "list"]).await;
    assert_eq!(listed.status.code(), Some(1));
    let text_content = text(&listed.stderr);
    assert!(
        text_content
            .contains("MCP server docs: invalid environment: there is no environment \"moon\""),
        "{text_content}"
    );
    let listed = McpConfig::with(&[]).run(&["mcp", "list"]).await;
    assert_eq!(listed.status.code(), Some(0));
    assert_eq!(text(&listed.stdout), "");
    assert!(text(&listed.stderr).contains("no MCP servers are configured"));
}
