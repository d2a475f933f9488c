//! The network of a process beside that of its sandbox policy.
//!
//! - [`request`]: the network that a start asks for; pure
//! - [`narrowing`]: the network that is left of it for a principal with a network policy; pure
//! - [`process_proxy`]: the proxy and its listeners, from before the start until the process is closed

mod narrowing;
mod process_proxy;
mod request;

pub(crate) use process_proxy::{ProcessNetwork, ProxyActivity, ProxyLimits};
pub use request::{InvalidNetwork, NetworkRequest};
