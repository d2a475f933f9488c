//! The audit log: who did what on this server.
//!
//! - [`event`]: the events, and what a line says about each; [`signal_request`]: the target of a signal
//! - [`log`]: the handle on the log
//! - [`queue`], [`batch`], [`sink`]: the bounded queue of lines, and the thread that writes them to a file
//! - [`connection_audit`]: records the events of one connection and of the processes that it starts
//!
//! Each event is recorded at one place, through which all dialects pass:
//!
//! | event | place |
//! |---|---|
//! | `connect`, `disconnect` | `connection/run` |
//! | `auth_failed` | `ServerState::record_refusal` |
//! | `start`, `exit`, `network` | `Connection::start`, which sets the observer of the process |
//! | `signal` | `connection/dispatch` |
//! | `write_file`, `remove` | `FileService::execute` |
//! | `http` | `dialects/http/request` |
//! | `forbidden` | `Reply::record_forbidden` |

mod batch;
mod connection_audit;
mod event;
mod log;
mod queue;
mod signal_request;
mod sink;

pub(crate) use connection_audit::ConnectionAudit;
pub(crate) use event::{Event, Text};
pub use log::AuditLog;
pub(crate) use log::Subject;
