//! The proxy of one process: decides which hosts it may reach, and makes the connections.
//!
//! # Theory of operation
//!
//! A [`Proxy`] serves one process on listeners that the caller provides: inside the process's own network
//! namespace, where nothing else can be reached, or on the host's loopback address. It speaks HTTP
//! (absolute-form requests and `CONNECT`) on one and SOCKS5 on the other.
//!
//! Each request names a [`Host`] and a port. The [`Policy`] judges them as text, before the name is
//! resolved, so that a refused name causes no query. A target that no rule allows may be left to a
//! [`Decider`]. Then the name is resolved once, every address is checked, and the connection is made to a
//! checked address: the name is not resolved again, so that it can't change in between. Nothing is cached.
//!
//! Each decision is an event on a bounded channel. If it is full, events are dropped; decisions never wait
//! for their readers. Dropping the [`Proxy`] closes its listeners and connections.
//!
//! - [`host`], [`address`], [`pattern`], [`policy`]: what is allowed; pure
//! - [`config`]: policies from the wire's configuration; pure
//! - [`named_policies`]: policies by name, and the rules that a request asks for; pure
//! - [`authorizer`]: the decision about one request, with the decider and the resolver
//! - [`presets`]: built-in policies; pure
//! - [`decision`]: reasons, the channel of decisions, counters
//! - [`dialer`]: resolves names and connects
//! - [`proxy`]: the servers
//! - [`variables`]: the environment variables that point programs to the proxy

mod address;
mod authorizer;
mod config;
mod decision;
mod dialer;
mod host;
mod named_policies;
mod pattern;
mod policy;
mod presets;
mod proxy;
mod variables;

pub use authorizer::{Decider, Decision};
pub use config::{ConfigError, ProxyConfig};
pub use decision::{Activity, DecisionSender, Record};
pub use dialer::{Dial, DialFuture, SystemDialer};
pub use host::Host;
pub use named_policies::{InvalidPolicy, NetworkPolicies, NetworkPolicy};
pub use pattern::{PatternError, Rule};
pub use policy::{Addresses, Policy, Reason, RuleSet, Verdict};
pub use proxy::{Limits, Listeners, Parts, Proxy};
pub use variables::{ProxyAddress, variables};
