//! `outpost mcp`: MCP servers on any executor.
//!
//! - [`mod@proxy`]: forwards messages between stdio and a server; [`stderr`] writes its stderr
//! - [`mod@list`], [`mod@call`]: use the configured servers, which [`servers`] starts
//! - [`mod@serve`]: an MCP server with tools for commands and files
//! - [`lazy_remote`]: an executor that is connected on demand

mod call;
mod lazy_remote;
mod list;
mod proxy;
mod serve;
mod servers;
mod stderr;

use std::process::ExitCode;

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
    Proxy(proxy::Proxy),
    /// Start all configured servers, and list them with their tools
    ///
    /// Servers are configured in outpost.toml, in [mcp_servers.NAME]. The exit code is 1 if a
    /// required server isn't ready, or if a remote server is configured without an executor.
    List(list::List),
    /// Call a tool of a configured server
    ///
    /// The exit code is 3 if the tool reports an error, 1 if there is no result, and 255 if the
    /// executor is unreachable.
    Call(call::Call),
    /// Run an MCP server with tools for commands and files
    ///
    /// Configure an MCP host to start this command. Its model can then run commands on this host,
    /// or on the server that --on names, start and follow long ones, and read, write, edit, list
    /// and search files. Commands inherit the environment of that host without variables that look
    /// like secrets. The end of stdin ends all processes.
    Serve(serve::Serve),
}

/// Runs the subcommand.
pub(crate) async fn mcp(args: &Mcp) -> anyhow::Result<ExitCode> {
    match &args.subcommand {
        McpSubcommand::Proxy(proxy) => proxy::proxy(proxy).await,
        McpSubcommand::List(list) => list::list(list).await,
        McpSubcommand::Call(call) => call::call(call).await,
        McpSubcommand::Serve(serve) => serve::serve(serve).await,
    }
}
