//! `outpost mcp`: MCP servers, wherever they run.
//!
//! - [`proxy`] passes messages on, and knows none of them; [`asides`] is what is
//!   said beside them
//! - [`list`] and [`call`] use the configured servers, through the [`company`]
//!   that is started for them
//! - [`serve`] is a server of its own, with tools for commands and files

mod asides;
mod call;
mod company;
mod dialing;
mod list;
mod proxy;
mod serve;

pub(crate) use list::{Listed, Standing};

use std::{io, process::ExitCode};

use super::task::perform;
use crate::{
    args::{Mcp, McpSubcommand},
    exit,
};

/// Does what was asked for.
pub(crate) fn run(args: &Mcp) -> ExitCode {
    perform(async {
        let done = match &args.subcommand {
            McpSubcommand::Proxy(proxy) => proxy::proxy(proxy).await,
            McpSubcommand::List(list) => list::list(list).await,
            McpSubcommand::Call(call) => call::call(call).await,
            McpSubcommand::Serve(serve) => serve::serve(serve).await,
        };
        // What can't be printed is told as everywhere, or not at all.
        done.or_else(|error| match error.is::<io::Error>() {
            true => Err(error),
            false => Ok(exit::with_error(&error)),
        })
    })
}
