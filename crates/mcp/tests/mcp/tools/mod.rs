//! The tools of `outpost mcp serve`, through the SDK's client, local and remote.

mod commands;
mod directories;
mod files;
mod harness;
mod processes;
mod raw_messages;
mod search;
mod shutdown;
mod tool_list;
