//! The table of settings.

use outpost_engine::{Inherit, TreeChoice, sandbox::Level};
use outpost_server::Listen;

use std::collections::BTreeMap;

use super::{McpServers, RemotePlace, Setting, field::Member, profiles::Configured};
use crate::{
    args::units::{Count, Idleness, Lease, Size, Span},
    logging::{LogFormat, LogLevel},
};

/// Everything that can be set, in the order in which it is shown.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting {
        key: "listen",
        value_name: Some("URL"),
        meaning: "Where to listen: ws://IP:PORT (port 0 picks one), unix:///PATH or stdio://; may be given more than once",
        secret: false,
        field: &Member::<Vec<Listen>> {
            get: |c| c.listen.clone(),
            set: |c, urls| c.listen = urls,
        },
    },
    Setting {
        key: "retain_bytes",
        value_name: Some("SIZE"),
        meaning: "How much of a process's newest output stays readable",
        secret: false,
        field: &Member::<Size> {
            get: |c| Size(c.limits.retain_bytes),
            set: |c, size| c.limits.retain_bytes = size.0,
        },
    },
    Setting {
        key: "window_bytes",
        value_name: Some("SIZE"),
        meaning: "How far a process may write ahead of a client that reads slowly, before it is held back",
        secret: false,
        field: &Member::<Size> {
            get: |c| Size(c.limits.window_bytes),
            // With a window of nothing no process could ever write.
            set: |c, size| c.limits.window_bytes = size.0.max(1),
        },
    },
    Setting {
        key: "closed_retention",
        value_name: Some("TIME"),
        meaning: "How long a process stays readable after it has closed",
        secret: false,
        field: &Member::<Span> {
            get: |c| Span(c.limits.closed_retention),
            set: |c, span| c.limits.closed_retention = span.0,
        },
    },
    Setting {
        key: "session_ttl",
        value_name: Some("TIME"),
        meaning: "How long a session stays when its connection is lost; then its processes are ended",
        secret: false,
        field: &Member::<Span> {
            get: |c| Span(c.settings.session_ttl),
            set: |c, span| c.settings.session_ttl = span.0,
        },
    },
    Setting {
        key: "max_session_ttl",
        value_name: Some("TIME"),
        meaning: "The longest such time that a client may ask for, or `unlimited`",
        secret: false,
        field: &Member::<Lease> {
            get: |c| Lease(c.settings.max_session_ttl),
            set: |c, lease| c.settings.max_session_ttl = lease.0,
        },
    },
    Setting {
        key: "max_sessions",
        value_name: Some("N"),
        meaning: "How many sessions there may be; a client beyond that is told to retry later",
        secret: false,
        field: &Member::<Count> {
            get: |c| Count(c.limits.max_sessions),
            set: |c, count| c.limits.max_sessions = count.0,
        },
    },
    Setting {
        key: "max_processes",
        value_name: Some("N"),
        meaning: "How many processes may run at once; a start beyond that is told to retry later",
        secret: false,
        field: &Member::<Count> {
            get: |c| Count(c.limits.max_processes),
            set: |c, count| c.limits.max_processes = count.0,
        },
    },
    Setting {
        key: "max_connections",
        value_name: Some("N"),
        meaning: "How many connections may be open at once; further ones get HTTP 503",
        secret: false,
        field: &Member::<Count> {
            get: |c| Count(c.settings.max_connections),
            set: |c, count| c.settings.max_connections = count.0,
        },
    },
    Setting {
        key: "concurrent_requests",
        value_name: Some("N"),
        meaning: "How many ordinary requests of one connection run at once; control is never counted",
        secret: false,
        field: &Member::<Count> {
            get: |c| Count(c.settings.concurrent_requests),
            set: |c, count| c.settings.concurrent_requests = count.0,
        },
    },
    Setting {
        key: "allowed_origins",
        value_name: None,
        meaning: "Web pages that may connect, each as its browser's `Origin` header says it",
        secret: false,
        field: &Member::<Vec<String>> {
            get: |c| c.settings.allowed_origins.clone(),
            set: |c, origins| c.settings.allowed_origins = origins,
        },
    },
    Setting {
        key: "trees",
        value_name: Some("KIND"),
        meaning: "How whole process trees are ended; `auto` takes the best this host has",
        secret: false,
        field: &Member::<TreeChoice> {
            get: |c| c.trees,
            set: |c, trees| c.trees = trees,
        },
    },
    Setting {
        key: "sandbox.level",
        value_name: Some("LEVEL"),
        meaning: "By what means processes are confined",
        secret: false,
        field: &Member::<Level> {
            get: |c| c.sandbox_level,
            set: |c, level| c.sandbox_level = level,
        },
    },
    Setting {
        key: "sandbox.default_profile",
        value_name: Some("NAME"),
        meaning: "What `command/exec` is confined to if its client doesn't say: :workspace, :read-only, :danger-full-access, or a profile of the configuration",
        secret: false,
        field: &Member::<String> {
            get: |c| c.settings.profiles.default.clone(),
            set: |c, name| c.settings.profiles.default = name,
        },
    },
    Setting {
        key: "sandbox.profiles",
        value_name: None,
        meaning: "Profiles by name, each with its files and its network",
        secret: false,
        field: &Member::<Configured> {
            get: |c| Configured(c.settings.profiles.configured.clone()),
            set: |c, profiles| c.settings.profiles.configured = profiles.0,
        },
    },
    Setting {
        key: "exit_when_idle",
        value_name: Some("TIME"),
        meaning: "End when for this long there was no connection, and no process running or still readable; or `never`",
        secret: false,
        field: &Member::<Idleness> {
            get: |c| Idleness(c.exit_when_idle),
            set: |c, idleness| c.exit_when_idle = idleness.0,
        },
    },
    Setting {
        key: "log.level",
        value_name: Some("LEVEL"),
        meaning: "What to log: off, error, warn, info, debug, trace, or a filter such as outpost_server=debug",
        secret: false,
        field: &Member::<LogLevel> {
            get: |c| c.log_level.clone(),
            set: |c, level| c.log_level = level,
        },
    },
    Setting {
        key: "log.format",
        value_name: Some("FORMAT"),
        meaning: "How to log",
        secret: false,
        field: &Member::<LogFormat> {
            get: |c| c.log_format,
            set: |c, format| c.log_format = format,
        },
    },
    Setting {
        key: "shell_environment_policy.inherit",
        value_name: None,
        meaning: "What of the server's environment `command/exec` starts from: `all`, `core` or `none`",
        secret: false,
        field: &Member::<Inherit> {
            get: |c| c.settings.command_env.inherit,
            set: |c, inherit| c.settings.command_env.inherit = inherit,
        },
    },
    Setting {
        key: "shell_environment_policy.ignore_default_excludes",
        value_name: None,
        meaning: "Whether names that look like secrets (`*KEY*`, `*SECRET*`, `*TOKEN*`) stay",
        secret: false,
        field: &Member::<bool> {
            get: |c| c.settings.command_env.ignore_default_excludes,
            set: |c, ignore| c.settings.command_env.ignore_default_excludes = ignore,
        },
    },
    Setting {
        key: "shell_environment_policy.exclude",
        value_name: None,
        meaning: "Patterns of names to drop",
        secret: false,
        field: &Member::<Vec<String>> {
            get: |c| c.settings.command_env.exclude.clone(),
            set: |c, patterns| c.settings.command_env.exclude = patterns,
        },
    },
    Setting {
        key: "shell_environment_policy.set",
        value_name: None,
        meaning: "Variables to add; their values are shown to nobody",
        // Who gives a variable to every process may well give a password.
        secret: true,
        field: &Member::<BTreeMap<String, String>> {
            get: |c| c.settings.command_env.set.clone(),
            set: |c, variables| c.settings.command_env.set = variables,
        },
    },
    Setting {
        key: "shell_environment_policy.include_only",
        value_name: None,
        meaning: "If not empty, patterns of the only names to keep",
        secret: false,
        field: &Member::<Vec<String>> {
            get: |c| c.settings.command_env.include_only.clone(),
            set: |c, patterns| c.settings.command_env.include_only = patterns,
        },
    },
    Setting {
        key: "mcp_servers",
        value_name: None,
        meaning: "The MCP servers, by name; what is said of them is shown to nobody",
        // Among their arguments, variables and headers there are passwords.
        secret: true,
        field: &Member::<McpServers> {
            get: |c| c.mcp_servers.clone(),
            set: |c, servers| c.mcp_servers = servers,
        },
    },
    Setting {
        key: "mcp.on",
        value_name: None,
        meaning: "Where MCP servers run that are to run remotely: a URL as for `--on`, or nothing",
        secret: false,
        field: &Member::<RemotePlace> {
            get: |c| c.mcp_on.clone(),
            set: |c, place| c.mcp_on = place,
        },
    },
];
