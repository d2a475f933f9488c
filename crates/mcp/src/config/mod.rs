//! How servers are configured: what stands in `[mcp_servers.NAME]`.

mod error;
mod read;
mod server;

pub use error::{ConfigError, Mistake};
pub use server::{Endpoint, Environment, Reach, ServerConfig, ToolChoice};
