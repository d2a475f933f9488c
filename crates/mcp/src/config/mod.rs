//! Configuration of MCP servers: the tables `[mcp_servers.NAME]`.

mod error;
mod parse;
mod server;

pub use error::{ConfigError, ConfigErrorKind};
pub use server::{Endpoint, Environment, ServerConfig, ToolFilter, TransportConfig};
