use serde_json::json;

use super::*;

fn parse(value: Value) -> Result<ServerConfig, String> {
    ServerConfig::parse("docs", &value).map_err(|error| error.to_string())
}

#[test]
fn parses_all_keys_of_a_stdio_server() {
    let config = parse(json!({
        "command": "npx",
        "args": ["-y", "server"],
        "env": {"LEVEL": "high"},
        "env_vars": ["HERE", {"name": "ALSO"}, {"name": "THERE", "source": "remote"}],
        "cwd": "/srv",
        "environment": "remote",
        "startup_timeout_sec": 2,
        "tool_timeout_sec": 0.5,
        "enabled": false,
        "required": true,
        "enabled_tools": ["a", "b"],
        "disabled_tools": ["b"],
        "supports_parallel_tool_calls": true,
    }))
    .unwrap();
    let TransportConfig::Stdio(command) = &config.transport else {
        panic!("{config:?}")
    };
    assert_eq!(command.program, "npx");
    assert_eq!(command.args, ["-y", "server"]);
    assert_eq!(command.env["LEVEL"], "high");
    let sources: Vec<_> = command
        .env_vars
        .iter()
        .map(|var| (var.name.as_str(), var.source))
        .collect();
    assert_eq!(
        sources,
        [
            ("HERE", EnvSource::Local),
            ("ALSO", EnvSource::Local),
            ("THERE", EnvSource::Remote),
        ]
    );
    assert_eq!(command.cwd, Some("/srv".into()));
    assert_eq!(config.environment, Environment::Remote);
    assert_eq!(config.startup_timeout, Some(Duration::from_secs(2)));
    assert_eq!(config.tool_timeout, Some(Duration::from_millis(500)));
    assert!(!config.enabled && config.required && config.parallel);
    assert!(config.tools.allows("a") && !config.tools.allows("b") && !config.tools.allows("c"));
}

#[test]
fn only_command_is_mandatory() {
    let config = parse(json!({"command": "server"})).unwrap();
    assert_eq!(
        config.transport,
        TransportConfig::Stdio(Command::new("server"))
    );
    assert_eq!(config.environment, Environment::Local);
    assert!(config.enabled && !config.required && !config.parallel);
    assert!(config.tools.allows("anything"));

    let remote = json!({"command": "s", "experimental_environment": "remote"});
    assert_eq!(parse(remote).unwrap().environment, Environment::Remote);
}

#[test]
fn parses_all_keys_of_an_http_server() {
    let config = parse(json!({
        "url": "https://mcp.example/mcp",
        "http_headers": {"X-Team": "a"},
        "env_http_headers": {"X-Key": "KEY"},
        "bearer_token_env_var": "TOKEN",
    }))
    .unwrap();
    let TransportConfig::Http(endpoint) = &config.transport else {
        panic!("{config:?}")
    };
    assert_eq!(endpoint.headers["X-Team"], "a");
    assert_eq!(endpoint.env_headers["X-Key"], "KEY");
    assert_eq!(endpoint.bearer_token_env_var.as_deref(), Some("TOKEN"));
}

#[test]
fn errors_name_server_and_key_but_no_value() {
    let mut messages = String::new();
    for value in [
        json!("secret"),
        json!({}),
        json!({"command": "a", "url": "http://b"}),
        json!({"command": "a", "http_headers": {}}),
        json!({"url": "http://b", "args": []}),
        json!({"url": "ftp://secret"}),
        json!({"command": "a", "comand": "secret"}),
        json!({"command": ""}),
        json!({"command": "a", "args": "secret"}),
        json!({"command": "a", "env": {"A": 1}}),
        json!({"command": "a", "env": {"A=B": "secret"}}),
        json!({"command": "a", "env_vars": [{"name": "A", "source": "moon"}]}),
        json!({"command": "a", "env_vars": [["A", "local"]]}),
        json!({"command": "a", "env_vars": [{"name": "A", "source": "remote"}]}),
        json!({"command": "a", "env_vars": [{"name": "*", "source": "remote"}], "environment": "remote"}),
        json!({"command": "a", "environment": "moon"}),
        json!({"command": "a", "experimental_environment": 3}),
        json!({"command": "a", "environment": "local", "experimental_environment": "local"}),
        json!({"command": "a", "startup_timeout_sec": 0}),
        json!({"command": "a", "tool_timeout_sec": "60"}),
        json!({"command": "a", "enabled": "yes"}),
        json!({"command": "a", "enabled_tools": [1]}),
        json!({"url": "http://b", "http_headers": {"a b": "secret"}}),
    ] {
        messages.push_str(&format!("{}\n", parse(value).unwrap_err()));
    }
    assert!(!messages.contains("secret"), "{messages}");
    insta::assert_snapshot!(messages, @r#"
    MCP server docs: expected a table, as in [mcp_servers.NAME]
    MCP server docs: set command or url
    MCP server docs: set either command or url, not both
    MCP server docs: http_headers cannot be combined with command
    MCP server docs: args cannot be combined with url
    MCP server docs: invalid url: expected an http:// or https:// URL
    MCP server docs: unknown key comand
    MCP server docs: invalid command: expected a non-empty string
    MCP server docs: invalid args: expected a list of strings
    MCP server docs: invalid env: expected a table of variable names and string values
    MCP server docs: invalid env: expected a table of variable names and string values
    MCP server docs: invalid env_vars: expected a list of variable names or { name = "NAME", source = "local" or "remote" }
    MCP server docs: invalid env_vars: expected a list of variable names or { name = "NAME", source = "local" or "remote" }
    MCP server docs: invalid env_vars: A has source = "remote", but the server runs locally
    MCP server docs: invalid env_vars: expected a list of variable names or { name = "NAME", source = "local" or "remote" }
    MCP server docs: invalid environment: there is no environment "moon", only "local" and "remote"
    MCP server docs: invalid experimental_environment: expected "local" or "remote"
    MCP server docs: set either environment or experimental_environment, not both
    MCP server docs: invalid startup_timeout_sec: expected a number of seconds greater than 0
    MCP server docs: invalid tool_timeout_sec: expected a number of seconds greater than 0
    MCP server docs: invalid enabled: expected true or false
    MCP server docs: invalid enabled_tools: expected a list of strings
    MCP server docs: invalid http_headers: expected a table of header names and string values
    "#);
    let error = ServerConfig::parse("a b", &json!({"command": "a"})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server a b: the name may contain only letters, digits, _ and -"
    );
}
