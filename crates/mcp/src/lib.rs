//! MCP servers, run wherever processes run.
//!
//! What MCP means is the business of its SDK, `rmcp`. Here servers are started,
//! their messages are moved, and all of them together are looked after.
//!
//! ```no_run
//! use std::{collections::BTreeMap, sync::Arc};
//! use outpost_client::{Local, LocalOptions};
//! use outpost_mcp::{Ensemble, Launchers, Limits, LocalLauncher, ServerConfig};
//! use serde_json::json;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let here = Arc::new(Local::new(LocalOptions::default())?);
//! let launchers = Launchers { local: Arc::new(LocalLauncher::new(here)), remote: None };
//! let time = ServerConfig::read("time", &json!({"command": "mcp-server-time"}))?;
//! let servers = BTreeMap::from([("time".to_owned(), time)]);
//!
//! let ensemble = Ensemble::start(servers, &launchers, &Limits::default());
//! for tool in ensemble.tools("time").await? {
//!     println!("{}", tool.name);
//! }
//! ensemble.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Theory of operation
//!
//! A [`Launcher`] starts a [`Command`] in a place and gives back a
//! [`ProcessTransport`]: lines of the process's output are messages to the SDK,
//! and its messages are lines of the process's input. The transport has a cursor
//! on the process's log and nothing else, so whatever the place does about lost
//! connections goes unnoticed here. What it knows beside the messages, such as
//! why the process ended, it writes into an [`Account`], from which sessions
//! explain their errors.
//!
//! A *session* is one conversation of the SDK with one server. A *member* of the
//! [`Ensemble`] has a task that opens a session, waits for its end and opens the
//! next one, as far as the pure `revival` allows; its state is a watch channel,
//! which callers wait on. Calls are made by whoever calls, in turns where the
//! server wants that.
//!
//! - `lines`, `glance` and [`Sieve`] are what a line is; `probe` is how an old
//!   server is told from a new one: all of them pure
//! - [`config`] is what stands in a file
//! - [`parting`] ends a server in good order: its input first, then a word, then
//!   force
//! - `web` speaks HTTP through a place
//! - [`serve`] is the other way round: a server of our own, with tools for models

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
pub mod parting;
mod probe;
pub mod serve;
mod session;
mod sieve;
mod transport;
mod web;

pub use account::{Account, Fault};
pub use command::{Command, CommandError, EnvSource, EnvVar, Part};
pub use config::{ConfigError, ServerConfig};
pub use ensemble::{Ensemble, Launchers, Status};
pub use error::{CallError, Failure};
pub use launcher::{ExecutorLauncher, LaunchError, Launcher, Launching, LocalLauncher, Placing};
pub use limits::Limits;
pub use lines::{Line, Lines};
pub use rmcp::model;
pub use session::Progress;
pub use sieve::{Passage, Sieve};
pub use transport::{ProcessTransport, SendError};
pub use web::EndpointError;
