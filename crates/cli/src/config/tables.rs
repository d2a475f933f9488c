//! Declares every setting: one struct per TOML table, one field per setting.
//!
//! `#[arg(long)]` gives a setting a flag, whose name is the key with dashes; inside a
//! table it is spelled out. `#[arg(skip)]` means that there is no flag. The declaration
//! order is the order of `config show`.
//!
//! The `value_parser` of a flag is used only if it lists choices. The derive requires the others,
//! but `sources::flag` replaces them by the deserializer of the setting, so that a value is parsed
//! in the same way wherever it comes from.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use outpost_engine::{
    EnvPolicy, Inherit, Limits, TreeChoice, Ttl,
    sandbox::{
        Level,
        policy::{Profile, Profiles},
    },
};
use outpost_mcp::{ServerConfig, config::ConfigError};
use outpost_server::{
    AuthLoadError, Authenticator, DEFAULT_MAX_CLOCK_SKEW, Listen, Settings, WebSocketAuth,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    hosts,
    memory_budget::default_memory_budget,
    network_policies::{self, NetworkPolicyTable},
    principals::{self, PrincipalTable},
    sandbox_profiles,
    values::{self, Secret, choice, choices, idle_timeout, max_ttl, size, time},
};
use crate::logging::LogFormat;

/// The part of the memory budget that is for kept output; the rest is for messages.
const KEPT_OUTPUT_PART: usize = 4;

/// The server's configuration.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Where to listen: ws://IP:PORT (port 0 picks one), wss://IP:PORT, unix:///PATH or stdio://; may be given more than once
    #[arg(long, value_name = "URL")]
    #[serde(with = "values::listen_urls")]
    pub(crate) listen: Vec<Listen>,
    /// How much of a process's newest output stays readable
    #[arg(long, value_name = "SIZE")]
    #[serde(with = "size")]
    pub(crate) retain_bytes: usize,
    /// How far a process may write ahead of a slow client before it is blocked
    #[arg(long, value_name = "SIZE")]
    #[serde(with = "size")]
    pub(crate) window_bytes: usize,
    /// Memory for messages, answers, bodies and kept output of all clients together
    #[arg(long, value_name = "SIZE")]
    #[serde(with = "size")]
    pub(crate) memory_budget: usize,
    /// How long a process stays readable after it has closed
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    #[serde(with = "time")]
    pub(crate) closed_retention: Duration,
    /// How long a session outlives its lost connection; then its processes are ended
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    #[serde(with = "time")]
    pub(crate) session_ttl: Duration,
    /// The longest session TTL that a client may request, or `unlimited`
    #[arg(long, value_name = "TIME", value_parser = max_ttl::parse)]
    #[serde(with = "max_ttl")]
    pub(crate) max_session_ttl: Ttl,
    /// Maximum number of sessions; a client beyond that is told to retry later
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "values::count")]
    pub(crate) max_sessions: usize,
    /// Maximum number of running processes; a start beyond that is told to retry later
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "values::count")]
    pub(crate) max_processes: usize,
    /// Maximum number of open connections; further ones get HTTP 503
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "values::count")]
    pub(crate) max_connections: usize,
    /// How many processes of one connection start at once; other requests don't count
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "values::count")]
    pub(crate) concurrent_requests: usize,
    /// Web origins that may connect, each exactly as in the browser's `Origin` header; may be given more than once
    #[arg(long, value_name = "ORIGIN")]
    #[serde(deserialize_with = "values::strings")]
    pub(crate) allowed_origins: Vec<String>,
    /// Names in the `Host` header that may be used besides localhost and loopback addresses; may be given more than once
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "values::strings")]
    pub(crate) allowed_hosts: Vec<String>,
    /// The certificate chain of wss:// listeners, in PEM encoding
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::path")]
    pub(crate) tls_cert: PathBuf,
    /// The private key of that certificate, in PEM encoding; only the server's user may be able to read it
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::path")]
    pub(crate) tls_key: PathBuf,
    /// Create a certificate for wss:// listeners, keep it, and print its fingerprint on stderr
    #[arg(long, value_name = "BOOL")]
    #[serde(deserialize_with = "values::switch")]
    pub(crate) tls_self_signed: bool,
    /// Certificate authorities whose client certificates are accepted, in PEM encoding
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::path")]
    pub(crate) tls_client_ca: PathBuf,
    /// Listen on ws:// addresses that aren't loopback, for a proxy that adds TLS; needs authentication
    #[arg(long, value_name = "BOOL")]
    #[serde(deserialize_with = "values::switch")]
    pub(crate) plaintext_behind_proxy: bool,
    /// How WebSocket clients authenticate
    #[arg(long, value_name = "KIND", value_parser = choices::<WebSocketAuth>())]
    #[serde(deserialize_with = "choice")]
    pub(crate) ws_auth: WebSocketAuth,
    /// The file of the capability token
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::absolute_path")]
    pub(crate) ws_token_file: PathBuf,
    /// SHA-256 of the capability token, in place of its file
    #[arg(long, value_name = "HEX")]
    #[serde(deserialize_with = "values::token_hash")]
    pub(crate) ws_token_sha256: String,
    /// The file of the secret that signs tokens with HS256
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::absolute_path")]
    pub(crate) ws_shared_secret_file: PathBuf,
    /// The issuer that signed tokens must name
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "values::text")]
    pub(crate) ws_issuer: String,
    /// The audience that signed tokens must name
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "values::text")]
    pub(crate) ws_audience: String,
    /// Tolerated difference between the clocks of the issuer and this host, in seconds
    #[arg(long, value_name = "N")]
    pub(crate) ws_max_clock_skew_seconds: u32,
    /// The file of the public keys that verify signed tokens, a JWK set, in place of a secret
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::absolute_path")]
    pub(crate) jwks_file: PathBuf,
    /// The file of named tokens, made by `outpost token new`
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "values::absolute_path")]
    pub(crate) tokens_file: PathBuf,
    /// Admit every user of this machine on loopback addresses without a token
    #[arg(long, value_name = "BOOL")]
    #[serde(deserialize_with = "values::switch")]
    pub(crate) allow_local_users: bool,
    /// Principals by name, each with what it may do.
    #[arg(skip)]
    #[serde(deserialize_with = "principals::deserialize")]
    pub(crate) principals: BTreeMap<String, PrincipalTable>,
    /// Where to record what clients do, as lines of JSON: a file, or `stderr`
    #[arg(long, value_name = "FILE|stderr")]
    #[serde(deserialize_with = "values::path_or_stderr")]
    pub(crate) audit_log: PathBuf,
    /// Refuse new processes, file changes and HTTP requests while the audit log cannot be written
    #[arg(long, value_name = "BOOL")]
    #[serde(deserialize_with = "values::switch")]
    pub(crate) audit_required: bool,
    /// Network policies by name, each with the hosts that it allows.
    #[arg(skip)]
    #[serde(deserialize_with = "network_policies::deserialize")]
    pub(crate) network_policies: BTreeMap<String, NetworkPolicyTable>,
    /// How whole process trees are ended; `auto` uses the best method of this host
    #[arg(long, value_name = "KIND", value_parser = choices::<TreeChoice>())]
    #[serde(deserialize_with = "choice")]
    pub(crate) trees: TreeChoice,
    #[command(flatten)]
    pub(crate) sandbox: SandboxTable,
    /// Exit after this long without a connection and without a running or readable process; or `never`
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    #[serde(with = "idle_timeout")]
    pub(crate) exit_when_idle: Option<Duration>,
    #[command(flatten)]
    pub(crate) log: LogTable,
    #[command(flatten)]
    pub(crate) shell_environment_policy: ShellEnvironmentPolicyTable,
    /// Hosts by name, for `--on`. Secret: they name servers and files of the user.
    #[arg(skip)]
    #[serde(deserialize_with = "hosts::deserialize")]
    pub(super) hosts: Secret<Map<String, Value>>,
    /// MCP servers by name. Secret: arguments, variables and headers may hold passwords.
    #[arg(skip)]
    #[serde(deserialize_with = "values::mcp_servers")]
    mcp_servers: Secret<Map<String, Value>>,
    #[command(flatten)]
    pub(crate) mcp: McpTable,
}

/// `[sandbox]`.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxTable {
    /// How processes are sandboxed
    #[arg(long = "sandbox-level", value_name = "LEVEL", value_parser = choices::<Level>())]
    #[serde(deserialize_with = "choice")]
    pub(crate) level: Level,
    /// The profile of a `command/exec` that names none: :workspace, :read-only, :danger-full-access, or a profile of the configuration
    #[arg(long = "sandbox-default-profile", value_name = "NAME")]
    #[serde(deserialize_with = "values::name")]
    pub(crate) default_profile: String,
    /// Profiles by name, each with its files and its network.
    #[arg(skip)]
    #[serde(with = "sandbox_profiles")]
    pub(crate) profiles: BTreeMap<String, Profile>,
}

/// `[log]`.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogTable {
    /// Log level: off, error, warn, info, debug, trace, or a filter such as outpost_server=debug
    #[arg(long = "log-level", value_name = "LEVEL")]
    #[serde(deserialize_with = "values::log_level")]
    pub(crate) level: String,
    /// Format of log lines
    #[arg(long = "log-format", value_name = "FORMAT", value_parser = choices::<LogFormat>())]
    #[serde(deserialize_with = "choice")]
    pub(crate) format: LogFormat,
}

/// `[shell_environment_policy]`: the environment of `command/exec`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ShellEnvironmentPolicyTable {
    /// Which part of the server's environment to start from: `all`, `core` or `none`.
    #[arg(skip)]
    #[serde(deserialize_with = "choice")]
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
    /// Server on which remote MCP servers run: a URL or a host's name as for `--on`, or empty.
    #[arg(skip)]
    #[serde(deserialize_with = "values::remote_url")]
    pub(crate) on: String,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        let settings = Settings::default();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Config {
            listen: vec![Listen::WebSocket(loopback)],
            retain_bytes: limits.retain_bytes,
            window_bytes: limits.window_bytes,
            memory_budget: default_memory_budget(),
            closed_retention: limits.closed_retention,
            session_ttl: settings.session_ttl,
            max_session_ttl: settings.max_session_ttl,
            max_sessions: limits.max_sessions,
            max_processes: limits.max_processes,
            max_connections: settings.max_connections,
            concurrent_requests: settings.concurrent_requests,
            allowed_origins: settings.allowed_origins,
            allowed_hosts: settings.allowed_hosts,
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            tls_self_signed: false,
            tls_client_ca: PathBuf::new(),
            plaintext_behind_proxy: settings.plaintext_behind_proxy,
            ws_auth: WebSocketAuth::default(),
            ws_token_file: PathBuf::new(),
            ws_token_sha256: String::new(),
            ws_shared_secret_file: PathBuf::new(),
            ws_issuer: String::new(),
            ws_audience: String::new(),
            ws_max_clock_skew_seconds: DEFAULT_MAX_CLOCK_SKEW.as_secs() as u32,
            jwks_file: PathBuf::new(),
            tokens_file: PathBuf::new(),
            allow_local_users: false,
            principals: BTreeMap::new(),
            audit_log: PathBuf::new(),
            audit_required: false,
            network_policies: BTreeMap::new(),
            trees: TreeChoice::default(),
            sandbox: SandboxTable::default(),
            exit_when_idle: None,
            log: LogTable::default(),
            shell_environment_policy: ShellEnvironmentPolicyTable::default(),
            hosts: Secret::default(),
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
            profiles: BTreeMap::new(),
        }
    }
}

impl Default for LogTable {
    fn default() -> Self {
        LogTable {
            level: "info".to_owned(),
            format: LogFormat::default(),
        }
    }
}

impl Config {
    /// Limits of the engine.
    pub(crate) fn limits(&self) -> Limits {
        // At least what one process may keep, which can use half of it.
        let of_one_process = self.retain_bytes.saturating_add(self.window_bytes);
        let kept_output_bytes =
            (self.memory_budget / KEPT_OUTPUT_PART).max(of_one_process.saturating_mul(2));
        Limits {
            kept_output_bytes,
            closed_bytes: (kept_output_bytes / 2) as u64,
            retain_bytes: self.retain_bytes,
            // With an empty window no process could ever write.
            window_bytes: self.window_bytes.max(1),
            closed_retention: self.closed_retention,
            max_sessions: self.max_sessions,
            empty_session_ttl: self.session_ttl.max(Limits::default().empty_session_ttl),
            max_processes: self.max_processes,
            ..Limits::default()
        }
    }

    /// Limits and policies of the server, without its certificate.
    pub(crate) fn server_settings(&self) -> Result<Settings, AuthLoadError> {
        let env = &self.shell_environment_policy;
        Ok(Settings {
            auth: Arc::new(Authenticator::load(self.auth_settings())?),
            plaintext_behind_proxy: self.plaintext_behind_proxy,
            session_ttl: self.session_ttl,
            max_session_ttl: self.max_session_ttl,
            max_connections: self.max_connections,
            message_memory_bytes: self.memory_budget - self.memory_budget / KEPT_OUTPUT_PART,
            concurrent_requests: self.concurrent_requests,
            allowed_origins: self.allowed_origins.clone(),
            allowed_hosts: self.allowed_hosts.clone(),
            profiles: self.profiles(),
            network_policies: self.network_policies(),
            command_env: EnvPolicy {
                inherit: env.inherit,
                ignore_default_excludes: env.ignore_default_excludes,
                exclude: env.exclude.clone(),
                set: env.set.0.clone(),
                include_only: env.include_only.clone(),
            },
            ..Settings::default()
        })
    }

    /// Configured MCP servers by name.
    pub(crate) fn mcp_servers(&self) -> Result<BTreeMap<String, ServerConfig>, ConfigError> {
        let tables = self.mcp_servers.0.iter();
        let servers = tables.map(|(name, table)| {
            let config = ServerConfig::parse(name, table)?;
            Ok((name.clone(), config))
        });
        servers.collect()
    }
}
