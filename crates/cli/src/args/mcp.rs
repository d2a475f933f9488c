//! `outpost mcp`.

use std::{ffi::OsString, path::PathBuf};

use super::{OnAny, Span, run::Variable, text::Text};

/// Arguments of `outpost mcp`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp proxy --on ws://127.0.0.1:7777 -- npx -y @modelcontextprotocol/server-everything
  outpost mcp list
  outpost mcp call everything get-sum '{\"a\": 2, \"b\": 3}'
  outpost mcp serve --on ws://127.0.0.1:7777")]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) subcommand: McpSubcommand,
}

/// Subcommands of `outpost mcp`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum McpSubcommand {
    /// Run an MCP server on stdio that runs elsewhere
    ///
    /// Configure an MCP host to start this command. Messages are forwarded in both directions;
    /// stderr of the server, and lines on its stdout that are not messages, go to stderr. The end
    /// of stdin ends the server. After a lost connection it reconnects; if that fails, the exit
    /// code is 255.
    Proxy(McpProxy),
    /// Start all configured servers, and list them with their tools
    ///
    /// Servers are configured in outpost.toml, in [mcp_servers.NAME]. The exit code is 1 if a
    /// required server isn't ready, or if a remote server is configured without an executor.
    List(McpList),
    /// Call a tool of a configured server
    ///
    /// The exit code is 3 if the tool reports an error, 1 if there is no result, and 255 if the
    /// executor is unreachable.
    Call(McpCall),
    /// Run an MCP server with tools for commands and files
    ///
    /// Configure an MCP host to start this command. Its model can then run commands on this host,
    /// or on the server that --on names, start and follow long ones, and read, write, edit, list
    /// and search files. Commands inherit the environment of that host without variables that look
    /// like secrets. The end of stdin ends all processes.
    Serve(McpServe),
}

/// Arguments of `outpost mcp serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp serve
  outpost mcp serve --cwd ~/project -e GITHUB_TOKEN
  outpost mcp serve --cwd ~/project --sandbox :workspace
  outpost mcp serve --on ws://127.0.0.1:7777
  outpost mcp serve --on 'stdio:ssh build outpost serve --listen stdio://'
  claude mcp add build -- outpost mcp serve --on wss://build.example:7777")]
pub(crate) struct McpServe {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The working directory of commands and base of relative paths; by default this directory, or
    /// the server's
    #[arg(long, value_name = "DIR", value_parser = Text)]
    pub(crate) cwd: Option<String>,

    /// The sandbox profile of commands and file operations: :workspace, :read-only, or a profile of
    /// the local configuration; the workspace is the working directory
    #[arg(long, value_name = "PROFILE")]
    pub(crate) sandbox: Option<String>,

    /// Set a variable for every command, or with NAME alone copy its value; may be given more than
    /// once
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,
}

/// Arguments of `outpost mcp proxy`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp proxy -- npx -y @modelcontextprotocol/server-everything
  outpost mcp proxy --on ws://127.0.0.1:7777 -e API_KEY -- my-server --verbose
  outpost mcp proxy --on 'stdio:ssh build outpost serve --listen stdio://' -- my-server")]
pub(crate) struct McpProxy {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The working directory; by default this directory, or the server's
    #[arg(long, value_name = "DIR", value_parser = Text)]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or with NAME alone copy its value; may be given more than once. With --on,
    /// only these and a few such as PATH and HOME are set
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The configuration and the executor of MCP servers.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfiguredServersOptions {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Log the stderr output and the state of the servers
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Arguments of `outpost mcp list`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp list
  outpost mcp list --on ws://127.0.0.1:7777
  outpost mcp list --json | jq '.[].tools[].name'")]
pub(crate) struct McpList {
    #[command(flatten)]
    pub(crate) servers: ConfiguredServersOptions,

    /// Print JSON with all details of each tool and resource
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `outpost mcp call`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp call everything echo '{\"message\": \"hello\"}'
  outpost mcp call time get_current_time '{\"timezone\": \"UTC\"}' --json
  jq -n '{a: 2, b: 3}' | outpost mcp call everything get-sum -")]
pub(crate) struct McpCall {
    #[command(flatten)]
    pub(crate) servers: ConfiguredServersOptions,

    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Timeout of the call, instead of the configured one
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,

    /// The server
    pub(crate) server: String,

    /// The tool
    pub(crate) tool: String,

    /// The arguments as a JSON object, or `-` to read them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
}
