//! MCP servers in a pool: third-party and misbehaving ones, local and remote.

mod cancellation;
mod harness;
mod http;
mod http_cancellation;
mod misbehaving;
mod restarts;
mod shutdown;
mod startup_failures;
mod third_party;
mod transport;
