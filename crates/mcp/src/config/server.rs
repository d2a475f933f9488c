//! The configuration of one server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::Command;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How to connect to the server.
    pub transport: TransportConfig,
    /// Where the server is started, or called from.
    pub environment: Environment,
    /// The startup timeout; `None` for the default.
    pub startup_timeout: Option<Duration>,
    /// The timeout of a call; `None` for the default.
    pub tool_timeout: Option<Duration>,
    /// Whether the server is started.
    pub enabled: bool,
    /// Whether `outpost mcp list` fails without this server.
    pub required: bool,
    /// The tools that may be called.
    pub tools: ToolFilter,
    /// Whether the server supports parallel calls.
    pub parallel: bool,
}

/// How to connect to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportConfig {
    /// Start a process and use its stdin and stdout.
    Stdio(Command),
    /// Connect to a running server over streamable HTTP.
    Http(Endpoint),
}

/// A server over HTTP. `Debug` omits the headers, because their values are secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL.
    pub url: String,
    /// HTTP headers with their values.
    pub headers: BTreeMap<String, String>,
    /// HTTP headers with the environment variables that hold their values.
    pub env_headers: BTreeMap<String, String>,
    /// The environment variable that holds the bearer token.
    pub bearer_token_env_var: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Where a server is started, or called from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// This process.
    #[default]
    Local,
    /// The remote executor.
    Remote,
}

/// Selects the tools that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// If set, only these tools are allowed.
    pub enabled: Option<BTreeSet<String>>,
    /// Tools that are not allowed.
    pub disabled: BTreeSet<String>,
}

impl ToolFilter {
    /// Reports whether a tool may be called.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let listed = self.enabled.as_ref().is_none_or(|list| list.contains(tool));
        listed && !self.disabled.contains(tool)
    }
}
