//! `outpost mcp`: MCP servers on any executor.
//!
//! - [`proxy`]: forwards messages between stdio and a server; [`stderr`] writes its stderr
//! - [`list`], [`call`]: use the configured servers, which [`servers`] starts, remotely by
//!   [`lazy_remote`]
//! - [`serve`]: an MCP server with tools for commands and files

mod call;
mod lazy_remote;
mod list;
mod proxy;
mod serve;
mod servers;
mod stderr;

pub(crate) use list::{Listed, ListedStatus};

use std::{io, process::ExitCode};

use super::runtime::run_command;
use crate::{
    args::{Mcp, McpSubcommand},
    exit,
};

/// Runs the subcommand.
pub(crate) fn run(args: &Mcp) -> ExitCode {
    run_command(async {
        let done = match &args.subcommand {
            McpSubcommand::Proxy(proxy) => proxy::proxy(proxy).await,
            McpSubcommand::List(list) => list::list(list).await,
            McpSubcommand::Call(call) => call::call(call).await,
            McpSubcommand::Serve(serve) => serve::serve(serve).await,
        };
        // An I/O error is one of stdout; the caller ignores a broken pipe.
        done.or_else(|error| {
            if error.is::<io::Error>() {
                Err(error)
            } else {
                Ok(exit::with_error(&error))
            }
        })
    })
}
