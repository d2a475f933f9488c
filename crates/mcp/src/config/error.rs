//! What can be wrong with the configuration of a server.

/// What is wrong, and with which server. Values aren't repeated: some of them
/// are passwords.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server}: {mistake}")]
pub struct ConfigError {
    /// The name of the server, as far as it can be shown.
    pub server: String,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It can't be called that.
    #[error("its name may have letters, digits, _ and - only")]
    Name,
    /// It is no table.
    #[error("expected a table, as in [mcp_servers.NAME]")]
    NotATable,
    /// A key that nobody knows.
    #[error("unknown key {key}")]
    UnknownKey {
        /// The key, as far as it can be shown.
        key: String,
    },
    /// A value of the wrong kind.
    #[error("cannot use {key}: expected {expected}")]
    Expected {
        /// Its key.
        key: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// Nobody knows what to start.
    #[error("it has neither command nor url")]
    NoReach,
    /// Nobody knows which of the two.
    #[error("it has both command and url")]
    BothReaches,
    /// A key that means nothing here.
    #[error("{key} means nothing beside {beside}")]
    Beside {
        /// The key.
        key: &'static str,
        /// What it doesn't go with.
        beside: &'static str,
    },
    /// It runs nowhere.
    #[error("cannot use {key}: there is no environment {name}, only \"local\" and \"remote\"")]
    Environment {
        /// How the key was spelled.
        key: &'static str,
        /// The name, as far as it can be shown.
        name: String,
    },
    /// Two keys that are one.
    #[error("it has both environment and experimental_environment")]
    BothEnvironments,
    /// There is no executor whose environment could be asked.
    #[error(
        "cannot use env_vars: {name} is to be taken from the executor, but the server runs here"
    )]
    NoExecutor {
        /// The variable.
        name: String,
    },
}
