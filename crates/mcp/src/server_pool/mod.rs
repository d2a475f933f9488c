//! All configured MCP servers.
//!
//! - [`pool`]: the public API
//! - [`managed_server`]: one server with its task, which starts and restarts it
//! - [`restart_policy`]: when a server is restarted (pure)
//! - [`status`]: the state of a server

mod managed_server;
mod pool;
mod restart_policy;
mod status;

pub use pool::{Launchers, ServerPool};
pub use status::ServerStatus;
