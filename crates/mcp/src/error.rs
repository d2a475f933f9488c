//! What can go wrong, in a form that a caller can react to.

use std::{sync::Arc, time::Duration};

use rmcp::{model::ErrorData, service::ClientInitializeError};

use crate::{EndpointError, LaunchError, account::Fault};

/// Why a server can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is to run on an executor, and there is none.
    #[error(
        "MCP server {server} is to run remotely, but no remote place is configured: name one with --on or in mcp.on"
    )]
    NoRemote {
        /// The server.
        server: String,
    },
    /// It could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It has ended.
    #[error(transparent)]
    Ended(#[from] Fault),
    /// What is sent along with every message can't be.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nothing can be sent to it.
    #[error("the server can't be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It speaks, and what it says is no.
    #[error("the server can't be talked to")]
    Handshake(#[source] Box<ClientInitializeError>),
    /// It speaks, and in a way that nobody knows.
    #[error("the server speaks revision {revision} of the protocol, which isn't known here")]
    Revision {
        /// In its own words.
        revision: Arc<str>,
    },
    /// It took too long.
    #[error("the server wasn't ready within {within:?}{}", in_vain(*skipped, line.as_deref()))]
    TimedOut {
        /// How long it had.
        within: Duration,
        /// How many lines it wrote that are no messages.
        skipped: u64,
        /// The first of them, or what it said on standard error.
        line: Option<Arc<str>>,
    },
}

fn in_vain(skipped: u64, line: Option<&str>) -> String {
    match (skipped, line) {
        (0, None) => String::new(),
        (0, Some(line)) => format!("; it said: {line}"),
        (1, line) => format!(
            "; it wrote a line that is no message: {}",
            line.unwrap_or_default()
        ),
        (count, line) => format!(
            "; it wrote {count} lines that are no messages, the first: {}",
            line.unwrap_or_default()
        ),
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no such server.
    #[error("there is no MCP server {server}")]
    UnknownServer {
        /// The name that was asked for.
        server: String,
    },
    /// The server isn't there.
    #[error("MCP server {server} isn't ready")]
    NotReady {
        /// Which one.
        server: String,
        /// Why not.
        #[source]
        why: Arc<Failure>,
    },
    /// The server was stopped.
    #[error("MCP server {server} was stopped")]
    Stopped {
        /// Which one.
        server: String,
    },
    /// The configuration doesn't let anybody call it.
    #[error("tool {tool} of MCP server {server} is disabled by its configuration")]
    Disabled {
        /// Which server.
        server: String,
        /// Which tool.
        tool: String,
    },
    /// The server said no.
    #[error("the server refused: {} ({})", .0.message, .0.code.0)]
    Refused(Box<ErrorData>),
    /// It took too long, and was called off.
    #[error("no answer within {within:?}")]
    TimedOut {
        /// How long it had.
        within: Duration,
    },
    /// It was called off.
    #[error("the call was called off")]
    Cancelled,
    /// The server is gone, and nobody knows how far it came with the call.
    #[error(transparent)]
    Ended(#[from] Fault),
    /// The call could not be sent.
    #[error("the call can't be sent")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server wants to know something first.
    #[error("the server asks for input, which nobody here can give")]
    InputRequired,
    /// The answer is to another question.
    #[error("the answer makes no sense")]
    Unexpected,
}
