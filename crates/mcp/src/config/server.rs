//! One server, as configured.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::Command;

/// A server, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How it is reached.
    pub reach: Reach,
    /// Where that is done.
    pub environment: Environment,
    /// How long it may take until it can be used.
    pub startup_timeout: Option<Duration>,
    /// How long a call may take.
    pub tool_timeout: Option<Duration>,
    /// Whether it is started at all.
    pub enabled: bool,
    /// Whether nothing goes without it.
    pub required: bool,
    /// Which of its tools may be used.
    pub tools: ToolChoice,
    /// Whether it may be called while a call is under way.
    pub parallel: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is started, and spoken to over its standard input and output.
    Stdio(Command),
    /// It is there already, and spoken to over streamable HTTP.
    Http(Endpoint),
}

/// A server over HTTP. Values of headers are secrets, so this has no way to be
/// shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is.
    pub url: String,
    /// Headers with their values.
    pub headers: BTreeMap<String, String>,
    /// Headers with the variables that have their values.
    pub env_headers: BTreeMap<String, String>,
    /// The variable that has the bearer token.
    pub bearer_token_env_var: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Where a server is started, or spoken to from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// Here.
    #[default]
    Local,
    /// On the executor.
    Remote,
}

/// Which tools may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// Only these, if there is a list.
    pub enabled: Option<BTreeSet<String>>,
    /// Not these.
    pub disabled: BTreeSet<String>,
}

impl ToolChoice {
    /// Whether this one may be used.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let listed = self.enabled.as_ref().is_none_or(|list| list.contains(tool));
        listed && !self.disabled.contains(tool)
    }
}
