//! The sandboxed file worker: a process of ours that executes calls received over a socket.
//!
//! Every path is resolved in the worker, never by the process that sends the call.
//!
//! - [`messages`]: calls and responses, encoded with postcard
//! - [`socket`]: sends and receives messages and file descriptors
//! - [`run`]: the worker's main loop

pub(crate) mod messages;
mod run;
mod socket;

pub use run::run_worker;
pub use socket::WorkerSocket;
