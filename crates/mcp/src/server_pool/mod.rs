//! All configured MCP servers.
//!
//! - [`pool`]: the public API
//! - [`managed_server`]: one server with its status and task, which starts and restarts it
//! - [`restart_policy`]: when a server is restarted (pure)

mod managed_server;
mod pool;
mod restart_policy;

pub use managed_server::ServerStatus;
pub use pool::ServerPool;
