//! MCP servers that run on an executor, and Outpost as an MCP server.
//!
//! The MCP protocol itself is implemented by the SDK, `rmcp`. This crate starts servers,
//! transports their messages, and manages all configured servers.
//!
//! ```no_run
//! use std::{collections::BTreeMap, sync::Arc};
//! use outpost_client::{Executor, LocalExecutor, LocalOptions};
//! use outpost_mcp::{Executors, Limits, ServerConfig, ServerPool};
//! use serde_json::json;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::new(LocalOptions::default())?);
//! let executors = Executors { local: Arc::new(executor), remote: None };
//! let time = ServerConfig::parse("time", &json!({"command": "mcp-server-time"}))?;
//! let servers = BTreeMap::from([("time".to_owned(), time)]);
//!
//! let pool = ServerPool::start(servers, &executors, &Limits::default());
//! for tool in pool.tools("time").await? {
//!     println!("{}", tool.name);
//! }
//! pool.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Theory of operation
//!
//! [`ProcessTransport::launch`] starts a [`Command`] on an executor: lines of the process's
//! stdout are messages for the SDK, and the SDK's messages are lines of its stdin. The
//! transport is a cursor on the process's journal, so a reconnect of the executor is invisible
//! here. It records why the process ended in [`ServerDiagnostics`], which explain the session's
//! errors.
//!
//! A [`Session`] is one MCP connection to one server. Each server of the [`ServerPool`]
//! has a task that opens a session, waits for its end and opens the next one, as the
//! restart policy allows. The status of a server is a watch channel, on which calls wait.
//!
//! - [`LineSplitter`], [`FilteredLine`]: bounded lines and messages (pure)
//! - `discovery_timeout`: the timeout of the MCP version negotiation (pure)
//! - `restart_policy`: when a server is restarted (pure)
//! - [`config`]: the configuration of a server
//! - [`shutdown`]: graceful termination: close stdin, then SIGTERM, then SIGKILL
//! - `streamable_http`: servers over streamable HTTP, called from an executor
//! - [`serve`]: Outpost as an MCP server with tools for models

mod command;
pub mod config;
mod diagnostics;
mod discovery_timeout;
mod error;
mod executors;
mod limits;
mod lines;
mod restart_policy;
pub mod serve;
mod server_pool;
mod session;
pub mod shutdown;
mod streamable_http;
mod transport;

pub use command::{Command, CommandError, EnvSource, ForwardedVariable, NonUnicodePart};
pub use config::{ConfigError, ServerConfig};
pub use diagnostics::{EndReason, ServerDiagnostics};
pub use error::{CallError, ServerFailure};
pub use executors::{ExecutorProvider, Executors};
pub use limits::Limits;
pub use lines::{FilteredLine, Line, LineSplitter};
pub use rmcp::model;
pub use server_pool::{ServerPool, ServerStatus};
pub use session::Session;
pub use streamable_http::RequestConfigError;
pub use transport::{ProcessTransport, TransportError};
