//! What is in force, in the types of those who want it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use outpost_engine::{Limits, TreeChoice, sandbox::Level};
use outpost_server::{Listen, Settings};

use super::{McpServers, RemotePlace};
use crate::logging::{LogFormat, LogLevel};

/// How the server is to be. The default is what is built in.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    pub(crate) listen: Vec<Listen>,
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    pub(crate) trees: TreeChoice,
    /// By what means processes are confined.
    pub(crate) sandbox_level: Level,
    /// None to stay, however little there is to do.
    pub(crate) exit_when_idle: Option<Duration>,
    pub(crate) log_level: LogLevel,
    pub(crate) log_format: LogFormat,
    pub(crate) mcp_servers: McpServers,
    pub(crate) mcp_on: RemotePlace,
}

impl Default for InForce {
    fn default() -> Self {
        InForce {
            listen: vec![Listen::WebSocket(SocketAddr::from((
                Ipv4Addr::LOCALHOST,
                0,
            )))],
            limits: Limits::default(),
            settings: Settings::default(),
            trees: TreeChoice::Auto,
            sandbox_level: Level::default(),
            exit_when_idle: None,
            log_level: LogLevel::default(),
            log_format: LogFormat::Text,
            mcp_servers: McpServers::default(),
            mcp_on: RemotePlace::default(),
        }
    }
}
