//! MCP servers, run wherever processes run.
//!
//! The protocol is the SDK's business (`rmcp`); here bytes are moved, and servers
//! are looked after.

mod account;
mod command;
pub mod config;
mod ensemble;
mod error;
mod glance;
mod host;
mod launcher;
mod limits;
mod lines;
mod probe;
pub mod serve;
mod session;
mod sieve;
mod transport;

pub use account::{Account, Fault};
pub use command::{Command, CommandError, EnvSource, EnvVar, Part};
pub use config::{ConfigError, ServerConfig};
pub use ensemble::{Ensemble, Launchers, Status};
pub use error::{CallError, Failure};
pub use launcher::{ExecutorLauncher, LaunchError, Launcher, Launching, LocalLauncher};
pub use limits::Limits;
pub use lines::{Line, Lines};
pub use rmcp::model;
pub use session::Progress;
pub use sieve::{Passage, Sieve};
pub use transport::{ProcessTransport, SendError};
