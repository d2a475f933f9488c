//! MCP servers over streamable HTTP, called from an executor.
//!
//! - [`client`]: sends the SDK's HTTP requests through the executor, never directly
//! - [`request_config`]: headers and the bearer token
//! - [`event_limit`]: bounds the size of server-sent events
//! - [`redirect`]: the redirects that are followed
//! - [`transport`]: the rmcp transport

mod client;
mod event_limit;
mod redirect;
mod request_config;
mod transport;

pub use request_config::RequestConfigError;
pub(crate) use transport::HttpTransport;
