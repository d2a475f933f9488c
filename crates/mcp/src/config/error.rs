//! Errors in the configuration of a server.

/// An error in the configuration of a server. Contains no values: some are secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server}: {kind}")]
pub struct ConfigError {
    /// The name of the server, made printable.
    pub server: String,
    /// The kind of error.
    pub kind: ConfigErrorKind,
}

/// The kind of a configuration error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigErrorKind {
    /// The name has invalid characters.
    #[error("the name may contain only letters, digits, _ and -")]
    Name,
    /// The value is not a table.
    #[error("expected a table, as in [mcp_servers.NAME]")]
    NotATable,
    /// The key is unknown.
    #[error("unknown key {key}")]
    UnknownKey {
        /// The key, made printable.
        key: String,
    },
    /// The value has the wrong type.
    #[error("invalid {key}: expected {expected}")]
    Expected {
        /// The key.
        key: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// Neither `command` nor `url` is set.
    #[error("set command or url")]
    NoTransport,
    /// Both `command` and `url` are set.
    #[error("set either command or url, not both")]
    BothTransports,
    /// The key doesn't apply to this transport.
    #[error("{key} cannot be combined with {other}")]
    Conflict {
        /// The key.
        key: &'static str,
        /// The key it conflicts with.
        other: &'static str,
    },
    /// The environment is unknown.
    #[error("invalid {key}: there is no environment {name}, only \"local\" and \"remote\"")]
    Environment {
        /// The key, in the spelling used.
        key: &'static str,
        /// The name, made printable.
        name: String,
    },
    /// Both spellings of `environment` are set.
    #[error("set either environment or experimental_environment, not both")]
    BothEnvironments,
    /// A local server can't take variables from a remote executor.
    #[error("invalid env_vars: {name} has source = \"remote\", but the server runs locally")]
    NoExecutor {
        /// The name of the variable.
        name: String,
    },
}
