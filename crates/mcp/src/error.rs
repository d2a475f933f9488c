//! Errors of MCP servers and of calls to them.

use std::{sync::Arc, time::Duration};

use rmcp::{model::ErrorData, service::ClientInitializeError};

use crate::{CommandError, EndReason, RequestConfigError};

/// Why a server is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ServerFailure {
    /// The server runs remotely, but no remote executor is configured.
    #[error(
        "MCP server {server} has environment = \"remote\", but no remote executor is configured; \
         set --on or mcp.on"
    )]
    NoRemote {
        /// The name of the server.
        server: String,
    },
    /// The command is invalid.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The executor is unreachable, or failed to start the process.
    #[error("cannot start the server")]
    Executor(#[from] outpost_client::Error),
    /// The server ended.
    #[error(transparent)]
    Ended(#[from] EndReason),
    /// The HTTP headers or the bearer token are unusable.
    #[error(transparent)]
    Endpoint(#[from] RequestConfigError),
    /// Sending to the server failed.
    #[error("the server is unreachable")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The MCP handshake failed.
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<ClientInitializeError>),
    /// The server chose a protocol version that this client doesn't support.
    #[error("the server uses MCP version {revision}, which is not supported")]
    Revision {
        /// The version as sent by the server.
        revision: Arc<str>,
    },
    /// The server was not ready in time.
    #[error("the server was not ready within {within:?}{}", output_hint(*skipped, line.as_deref()))]
    TimedOut {
        /// The startup timeout.
        within: Duration,
        /// Number of stdout lines that are not messages.
        skipped: u64,
        /// The first of them, or else the last line on stderr.
        line: Option<Arc<str>>,
    },
}

fn output_hint(skipped: u64, line: Option<&str>) -> String {
    match (skipped, line.unwrap_or_default()) {
        (0, "") => String::new(),
        (0, line) => format!("; last line on stderr: {line}"),
        (1, line) => format!("; it wrote 1 line that is not a message: {line}"),
        (_, line) => format!("; it wrote {skipped} lines that are not messages, the first: {line}"),
    }
}

/// Why a call returned no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No server has this name.
    #[error("there is no MCP server {server}")]
    UnknownServer {
        /// The requested name.
        server: String,
    },
    /// The server failed to start.
    #[error("MCP server {server} is not ready")]
    NotReady {
        /// The name of the server.
        server: String,
        /// Why the server failed.
        #[source]
        why: Arc<ServerFailure>,
    },
    /// The server was stopped.
    #[error("MCP server {server} was stopped")]
    Stopped {
        /// The name of the server.
        server: String,
    },
    /// The configuration disables the tool.
    #[error("tool {tool} of MCP server {server} is disabled in its configuration")]
    Disabled {
        /// The name of the server.
        server: String,
        /// The name of the tool.
        tool: String,
    },
    /// The server responded with an error.
    #[error("the server returned an error: {} ({})", .0.message, .0.code.0)]
    Rejected(Box<ErrorData>),
    /// The call timed out and was cancelled.
    #[error("no response within {within:?}")]
    TimedOut {
        /// The timeout.
        within: Duration,
    },
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The server ended during the call, so it is unknown how far the call got.
    #[error(transparent)]
    Ended(#[from] EndReason),
    /// Sending the call failed.
    #[error("cannot send the call")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server asks for user input, which this client doesn't support.
    #[error("the server asks for user input, which is not supported")]
    InputRequired,
    /// The response has an unexpected type.
    #[error("the server sent an unexpected response")]
    Unexpected,
}
