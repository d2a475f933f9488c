//! The seccomp filter of sandboxed processes.
//!
//! - [`rules`]: tables of forbidden and conditional system calls
//! - [`filter`](mod@filter): compiles the tables to a BPF program
//! - [`listener`]: receives and answers the system calls that the filter leaves to a supervisor

mod filter;
mod listener;
mod rules;

pub(super) use filter::filter;
pub(super) use listener::{Listener, Notification, Pending, Reply};

/// The sockets that a filter allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Socket pairs only. Without a network namespace all others reach the host.
    Pairs,
    /// Sockets of the network namespace, and socket pairs.
    Namespaced,
    /// Like [`Namespaced`](Self::Namespaced), and unix sockets. A supervisor makes all connections.
    Supervised,
    /// Sockets of the host's network.
    Host,
}
