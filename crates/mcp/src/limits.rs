//! Limits and timeouts for MCP servers.

use std::time::Duration;

/// Limits and timeouts. The defaults are what ships.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a message from a server.
    pub message_bytes: usize,
    /// Maximum length of a stderr line that is logged.
    pub stderr_line_bytes: usize,
    /// Startup timeout, unless the server's configuration sets one.
    pub startup: Duration,
    /// Timeout of a call, unless the server's configuration sets one.
    pub tool: Duration,
    /// Time to wait for a response to `server/discover`. After that the server is
    /// assumed to implement an older MCP version only.
    pub discovery: Duration,
    /// Time to wait for a process's exit after the server closed its own stdin.
    pub exit_after_stdin_closed: Duration,
    /// Time that a server has to exit after this side closed its stdin. After
    /// that it is terminated.
    pub stdin_close_grace: Duration,
    /// Maximum number of tools, resources or templates listed per server.
    pub listed: usize,
    /// Delay before the second restart. The first has none; each further one doubles it.
    pub restart_delay: Duration,
    /// Upper bound of the restart delay.
    pub restart_delay_max: Duration,
    /// Uptime after which earlier restarts no longer count.
    pub healthy_after: Duration,
    /// Maximum number of consecutive restarts.
    pub max_restarts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message_bytes: 8 * 1024 * 1024,
            stderr_line_bytes: 1024 * 1024,
            startup: Duration::from_secs(10),
            tool: Duration::from_secs(60),
            discovery: Duration::from_secs(3),
            exit_after_stdin_closed: Duration::from_secs(1),
            stdin_close_grace: Duration::from_secs(1),
            listed: 10_000,
            restart_delay: Duration::from_secs(1),
            restart_delay_max: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
            max_restarts: 5,
        }
    }
}
