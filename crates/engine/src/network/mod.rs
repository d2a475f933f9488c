//! The network of a process beside that of its sandbox policy.
//!
//! - [`request`]: the network that a start asks for; pure
//! - [`managed`]: the proxy and its listeners, from before the start until the process is closed

mod managed;
mod request;

pub(crate) use managed::{NetworkHandle, NetworkProxies, ProcessNetwork};
pub use request::{InvalidNetwork, NetworkRequest};
