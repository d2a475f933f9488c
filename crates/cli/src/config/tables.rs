//! Declares every setting: one struct per TOML table, one field per setting.
//!
//! `#[arg(long)]` gives a setting a flag, whose name is the key with dashes; inside a
//! table it is spelled out. `#[arg(skip)]` means that there is no flag. The declaration
//! order is the order of `config show`.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use outpost_engine::{
    EnvPolicy, Inherit, Limits, TreeChoice,
    sandbox::{Level, policy::Profiles},
};
use outpost_server::{Listen, Settings};
use serde::{Deserialize, Serialize};

use super::{
    choice::{self, parser},
    profiles::ProfileTables,
    values::{self, McpServers, RemoteUrl, Secret},
};
use crate::{
    args::units::{Count, IdleTimeout, MaxTtl, Size, Span},
    logging::{LogFormat, LogLevel},
};

/// The server's configuration.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Where to listen: ws://IP:PORT (port 0 picks one), unix:///PATH or stdio://; may be given more than once
    #[arg(long, value_name = "URL")]
    #[serde(with = "values::listen_urls")]
    pub(crate) listen: Vec<Listen>,
    /// How much of a process's newest output stays readable
    #[arg(long, value_name = "SIZE")]
    pub(crate) retain_bytes: Size,
    /// How far a process may write ahead of a slow client before it is blocked
    #[arg(long, value_name = "SIZE")]
    pub(crate) window_bytes: Size,
    /// How long a process stays readable after it has closed
    #[arg(long, value_name = "TIME")]
    pub(crate) closed_retention: Span,
    /// How long a session outlives its lost connection; then its processes are ended
    #[arg(long, value_name = "TIME")]
    pub(crate) session_ttl: Span,
    /// The longest session TTL that a client may request, or `unlimited`
    #[arg(long, value_name = "TIME")]
    pub(crate) max_session_ttl: MaxTtl,
    /// Maximum number of sessions; a client beyond that is told to retry later
    #[arg(long, value_name = "N")]
    pub(crate) max_sessions: Count,
    /// Maximum number of running processes; a start beyond that is told to retry later
    #[arg(long, value_name = "N")]
    pub(crate) max_processes: Count,
    /// Maximum number of open connections; further ones get HTTP 503
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Count,
    /// How many ordinary requests of one connection run at once; control requests don't count
    #[arg(long, value_name = "N")]
    pub(crate) concurrent_requests: Count,
    /// Web origins that may connect, each exactly as in the browser's `Origin` header
    #[arg(skip)]
    #[serde(deserialize_with = "values::strings")]
    pub(crate) allowed_origins: Vec<String>,
    /// How whole process trees are ended; `auto` uses the best method of this host
    #[arg(long, value_name = "KIND", value_parser = parser::<TreeChoice>())]
    #[serde(with = "choice")]
    pub(crate) trees: TreeChoice,
    #[command(flatten)]
    pub(crate) sandbox: SandboxTable,
    /// Exit after this long without a connection and without a running or readable process; or `never`
    #[arg(long, value_name = "TIME")]
    pub(crate) exit_when_idle: IdleTimeout,
    #[command(flatten)]
    pub(crate) log: LogTable,
    #[command(flatten)]
    pub(crate) shell_environment_policy: ShellEnvironmentPolicyTable,
    /// MCP servers by name. Secret: arguments, variables and headers may hold passwords.
    #[arg(skip)]
    pub(crate) mcp_servers: Secret<McpServers>,
    #[command(flatten)]
    pub(crate) mcp: McpTable,
}

/// `[sandbox]`.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxTable {
    /// How processes are confined
    #[arg(long = "sandbox-level", value_name = "LEVEL", value_parser = parser::<Level>())]
    #[serde(with = "choice")]
    pub(crate) level: Level,
    /// The profile of a `command/exec` that names none: :workspace, :read-only, :danger-full-access, or a profile of the configuration
    #[arg(long = "sandbox-default-profile", value_name = "NAME")]
    #[serde(deserialize_with = "values::name")]
    pub(crate) default_profile: String,
    /// Profiles by name, each with its files and its network.
    #[arg(skip)]
    pub(crate) profiles: ProfileTables,
}

/// `[log]`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogTable {
    /// Log level: off, error, warn, info, debug, trace, or a filter such as outpost_server=debug
    #[arg(long = "log-level", value_name = "LEVEL")]
    pub(crate) level: LogLevel,
    /// Format of log lines
    #[arg(long = "log-format", value_name = "FORMAT", value_parser = parser::<LogFormat>())]
    #[serde(with = "choice")]
    pub(crate) format: LogFormat,
}

/// `[shell_environment_policy]`: the environment of `command/exec`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ShellEnvironmentPolicyTable {
    /// Which part of the server's environment to start from: `all`, `core` or `none`.
    #[arg(skip)]
    #[serde(with = "choice")]
    pub(crate) inherit: Inherit,
    /// Keeps names that look like secrets (`*KEY*`, `*SECRET*`, `*TOKEN*`).
    #[arg(skip)]
    #[serde(deserialize_with = "values::switch")]
    pub(crate) ignore_default_excludes: bool,
    /// Patterns of names to drop.
    #[arg(skip)]
    #[serde(deserialize_with = "values::strings")]
    pub(crate) exclude: Vec<String>,
    /// Variables to add. Secret: a variable for every process may be a password.
    #[arg(skip)]
    #[serde(deserialize_with = "values::variables")]
    pub(crate) set: Secret<BTreeMap<String, String>>,
    /// If not empty, patterns of the only names to keep.
    #[arg(skip)]
    #[serde(deserialize_with = "values::strings")]
    pub(crate) include_only: Vec<String>,
}

/// `[mcp]`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpTable {
    /// Server on which remote MCP servers run: a URL as for `--on`, or empty.
    #[arg(skip)]
    pub(crate) on: RemoteUrl,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        let settings = Settings::default();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Config {
            listen: vec![Listen::WebSocket(loopback)],
            retain_bytes: Size(limits.retain_bytes),
            window_bytes: Size(limits.window_bytes),
            closed_retention: Span(limits.closed_retention),
            session_ttl: Span(settings.session_ttl),
            max_session_ttl: MaxTtl(settings.max_session_ttl),
            max_sessions: Count(limits.max_sessions),
            max_processes: Count(limits.max_processes),
            max_connections: Count(settings.max_connections),
            concurrent_requests: Count(settings.concurrent_requests),
            allowed_origins: settings.allowed_origins,
            trees: TreeChoice::default(),
            sandbox: SandboxTable::default(),
            exit_when_idle: IdleTimeout(None),
            log: LogTable::default(),
            shell_environment_policy: ShellEnvironmentPolicyTable::default(),
            mcp_servers: Secret::default(),
            mcp: McpTable::default(),
        }
    }
}

impl Default for SandboxTable {
    fn default() -> Self {
        SandboxTable {
            level: Level::default(),
            default_profile: Profiles::default().default,
            profiles: ProfileTables::default(),
        }
    }
}

impl Config {
    /// Limits of the engine.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            retain_bytes: self.retain_bytes.0,
            // With an empty window no process could ever write.
            window_bytes: self.window_bytes.0.max(1),
            closed_retention: self.closed_retention.0,
            max_sessions: self.max_sessions.0,
            max_processes: self.max_processes.0,
            ..Limits::default()
        }
    }

    /// Limits and policies of the server.
    pub(crate) fn server_settings(&self) -> Settings {
        let env = &self.shell_environment_policy;
        Settings {
            session_ttl: self.session_ttl.0,
            max_session_ttl: self.max_session_ttl.0,
            max_connections: self.max_connections.0,
            concurrent_requests: self.concurrent_requests.0,
            allowed_origins: self.allowed_origins.clone(),
            profiles: self.profiles(),
            command_env: EnvPolicy {
                inherit: env.inherit,
                ignore_default_excludes: env.ignore_default_excludes,
                exclude: env.exclude.clone(),
                set: env.set.0.clone(),
                include_only: env.include_only.clone(),
            },
            ..Settings::default()
        }
    }

    /// Sandbox profiles by name.
    pub(crate) fn profiles(&self) -> Profiles {
        Profiles {
            default: self.sandbox.default_profile.clone(),
            configured: self.sandbox.profiles.0.clone(),
        }
    }
}
