//! Outpost as an MCP server: tools that run commands and use files on an executor.
//!
//! - [`ToolServer`]: the state shared by all calls, and its [`ToolLimits`]
//! - [`serve`](ToolServer::serve) (`handler`): the session with a client; `transport`: its
//!   messages as lines
//! - `tool`: the tool interface; `schema`: JSON schemas; `error`: errors of tools
//! - `tools/`: the tools and their table
//! - `processes`: the processes of the session; `output_log`: their output, and the pages
//!   and summaries of it; `text`: formatting
//! - `file_locks`: serializes changes of a file
//! - `files/`: the pure part of the file tools
//!
//! # Theory of operation
//!
//! Only processes persist between calls, each with an id. A task collects the output of
//! each process, so that a process never blocks until a model reads. The retained output
//! is bounded: the beginning and the end of each stream. The executor's journal can't
//! replace it, because it retains only the end. A cursor is a byte offset, so that reading
//! is repeatable.
//!
//! A command that fails is a normal result. A tool error means that the tool itself
//! failed.

mod error;
mod file_locks;
mod files;
mod handler;
mod limits;
mod output_log;
mod processes;
mod schema;
mod text;
mod tool;
mod tool_server;
mod tools;
mod transport;

use error::ToolError;
pub use handler::ServeError;
pub use limits::ToolLimits;
pub use output_log::OutputRetention;
use output_log::{OutputExcerpt, OutputLog, OutputPage, Stream};
use processes::{ProcessRecord, ProcessRegistry, ProcessState, ToolProcess};
use tool::{CallContext, Tool, ToolEntry};
use tool_server::StartRequest;
pub use tool_server::{ToolSandbox, ToolServer, ToolServerConfig};
