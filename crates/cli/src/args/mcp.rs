//! `outpost mcp`.

use std::{ffi::OsString, path::PathBuf};

use super::{OnAny, Span, run::Variable, text::Text};

/// What to do with MCP servers.
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

/// What can be done with them.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum McpSubcommand {
    /// Be an MCP server that is in truth running elsewhere
    ///
    /// Point an MCP host at this command. Messages are passed on in both
    /// directions; what the server prints on stderr, or on stdout without its
    /// being a message, is printed on stderr. The end of the input ends the
    /// server. A lost connection is brought back without anybody's noticing; if
    /// it can't be, the exit code is 255.
    Proxy(McpProxy),
    /// Start all configured servers, and list them with their tools
    ///
    /// Servers are configured in outpost.toml, in [mcp_servers.NAME]. The exit
    /// code is 1 if one that is required isn't ready, or one is to run remotely
    /// and no remote place is configured.
    List(McpList),
    /// Call a tool of a configured server
    ///
    /// The exit code is 3 if the tool says that it has failed, 1 if there is no
    /// answer of it, and 255 if the executor is out of reach.
    Call(McpCall),
    /// Be an MCP server with tools to run commands and to use files
    ///
    /// Point an MCP host at this command, and its model can run commands here,
    /// or on the server that --on names, start and follow long ones, and read,
    /// write, edit, list and search files. Commands get the environment of the
    /// place they run in, without what looks like a secret. Whatever still runs
    /// is ended with the input.
    Serve(McpServe),
}

/// Where the tools work.
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

    /// The directory where commands start and relative paths begin; here, or
    /// where the server is
    #[arg(long, value_name = "DIR", value_parser = Text)]
    pub(crate) cwd: Option<String>,

    /// What commands and file operations are confined to: :workspace,
    /// :read-only, or a profile of the configuration here; the workspace is the
    /// directory where commands start
    #[arg(long, value_name = "PROFILE")]
    pub(crate) sandbox: Option<String>,

    /// Set a variable for every command, or with its name alone take it from
    /// here; may be given more than once
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,
}

/// Which server to be.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp proxy -- npx -y @modelcontextprotocol/server-everything
  outpost mcp proxy --on ws://127.0.0.1:7777 -e API_KEY -- my-server --verbose
  outpost mcp proxy --on 'stdio:ssh build outpost serve --listen stdio://' -- my-server")]
pub(crate) struct McpProxy {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The directory to run it in; here, or where the server is
    #[arg(long, value_name = "DIR", value_parser = Text)]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or with its name alone take it from here; may be given
    /// more than once. With --on only these and a few like PATH and HOME are set
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Where the servers are configured, and where they run.
#[derive(clap::Args, Debug)]
pub(crate) struct McpServersArgs {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Show what the servers say on stderr, and what becomes of them
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// How to list them.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp list
  outpost mcp list --on ws://127.0.0.1:7777
  outpost mcp list --json | jq '.[].tools[].name'")]
pub(crate) struct McpList {
    #[command(flatten)]
    pub(crate) servers: McpServersArgs,

    /// As JSON, with everything there is to know of each tool and resource
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to call.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp call everything echo '{\"message\": \"hello\"}'
  outpost mcp call time get_current_time '{\"timezone\": \"UTC\"}' --json
  jq -n '{a: 2, b: 3}' | outpost mcp call everything get-sum -")]
pub(crate) struct McpCall {
    #[command(flatten)]
    pub(crate) servers: McpServersArgs,

    /// The whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// How long it may take, instead of what is configured
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
