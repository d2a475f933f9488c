use serde_json::json;

use super::*;

fn read(value: Value) -> Result<ServerConfig, String> {
    ServerConfig::read("docs", &value).map_err(|error| error.to_string())
}

#[test]
fn everything_that_can_be_said_about_a_started_server_is_understood() {
    let config = read(json!({
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
    let Reach::Stdio(command) = &config.reach else {
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
fn little_has_to_be_said() {
    let config = read(json!({"command": "server"})).unwrap();
    assert_eq!(config.reach, Reach::Stdio(Command::new("server")));
    assert_eq!(config.environment, Environment::Local);
    assert!(config.enabled && !config.required && !config.parallel);
    assert!(config.tools.allows("anything"));

    let remote = json!({"command": "s", "experimental_environment": "remote"});
    assert_eq!(read(remote).unwrap().environment, Environment::Remote);
}

#[test]
fn a_server_over_http_has_headers() {
    let config = read(json!({
        "url": "https://mcp.example/mcp",
        "http_headers": {"X-Team": "a"},
        "env_http_headers": {"X-Key": "KEY"},
        "bearer_token_env_var": "TOKEN",
    }))
    .unwrap();
    let Reach::Http(endpoint) = &config.reach else {
        panic!("{config:?}")
    };
    assert_eq!(endpoint.headers["X-Team"], "a");
    assert_eq!(endpoint.env_headers["X-Key"], "KEY");
    assert_eq!(endpoint.bearer_token_env_var.as_deref(), Some("TOKEN"));
}

#[test]
fn mistakes_name_the_server_and_the_key_and_never_a_value() {
    let mut words = String::new();
    for value in [
        json!("hush"),
        json!({}),
        json!({"command": "a", "url": "http://b"}),
        json!({"command": "a", "http_headers": {}}),
        json!({"url": "http://b", "args": []}),
        json!({"url": "ftp://hush"}),
        json!({"command": "a", "comand": "hush"}),
        json!({"command": ""}),
        json!({"command": "a", "args": "hush"}),
        json!({"command": "a", "env": {"A": 1}}),
        json!({"command": "a", "env": {"A=B": "hush"}}),
        json!({"command": "a", "env_vars": [{"name": "A", "source": "moon"}]}),
        json!({"command": "a", "env_vars": [{"name": "A", "source": "remote"}]}),
        json!({"command": "a", "env_vars": [{"name": "*", "source": "remote"}], "environment": "remote"}),
        json!({"command": "a", "environment": "moon"}),
        json!({"command": "a", "experimental_environment": 3}),
        json!({"command": "a", "environment": "local", "experimental_environment": "local"}),
        json!({"command": "a", "startup_timeout_sec": 0}),
        json!({"command": "a", "tool_timeout_sec": "60"}),
        json!({"command": "a", "enabled": "yes"}),
        json!({"command": "a", "enabled_tools": [1]}),
        json!({"url": "http://b", "http_headers": {"a b": "hush"}}),
    ] {
        words.push_str(&format!("{}\n", read(value).unwrap_err()));
    }
    assert!(!words.contains("hush"), "{words}");
    insta::assert_snapshot!(words, @r#"
    MCP server docs: expected a table, as in [mcp_servers.NAME]
    MCP server docs: it has neither command nor url
    MCP server docs: it has both command and url
    MCP server docs: http_headers means nothing beside command
    MCP server docs: args means nothing beside url
    MCP server docs: cannot use url: expected a URL that begins with http:// or https://
    MCP server docs: unknown key comand
    MCP server docs: cannot use command: expected a string that isn't empty
    MCP server docs: cannot use args: expected a list of strings
    MCP server docs: cannot use env: expected a table of strings, with names of variables for keys
    MCP server docs: cannot use env: expected a table of strings, with names of variables for keys
    MCP server docs: cannot use env_vars: expected a list of names of variables, or of { name = "NAME", source = "local" or "remote" }
    MCP server docs: cannot use env_vars: A is to be taken from the executor, but the server runs here
    MCP server docs: cannot use env_vars: expected a list of names of variables, or of { name = "NAME", source = "local" or "remote" }
    MCP server docs: cannot use environment: there is no environment "moon", only "local" and "remote"
    MCP server docs: cannot use experimental_environment: expected "local" or "remote"
    MCP server docs: it has both environment and experimental_environment
    MCP server docs: cannot use startup_timeout_sec: expected a number of seconds greater than 0
    MCP server docs: cannot use tool_timeout_sec: expected a number of seconds greater than 0
    MCP server docs: cannot use enabled: expected true or false
    MCP server docs: cannot use enabled_tools: expected a list of strings
    MCP server docs: cannot use http_headers: expected a table of strings, with names of headers for keys
    "#);
    let named = ServerConfig::read("a b", &json!({"command": "a"})).unwrap_err();
    assert_eq!(
        named.to_string(),
        "MCP server a b: its name may have letters, digits, _ and - only"
    );
}
