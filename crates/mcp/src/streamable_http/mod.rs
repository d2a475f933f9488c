//! MCP servers over streamable HTTP, called from an executor.
//!
//! - [`client`]: sends the SDK's HTTP requests through the executor, never directly; decides
//!   which redirects are followed, and bounds the size of server-sent events
//! - [`transport`]: the rmcp transport, with its headers and bearer token

mod client;
mod transport;

pub(crate) use transport::HttpTransport;
pub use transport::RequestConfigError;
