//! Local executor: runs processes of this program in an engine with a single private session.
//!
//! - [`executor`]: the executor and its table of processes
//! - [`backend`]: controls one process
//! - [`forward`]: moves the events of one process from the engine into the client's log
//! - [`file_backend`], [`http`]: files of this host, and requests made from it
//! - [`errors`]: maps errors of the engine to those of a server

mod backend;
mod errors;
mod executor;
mod file_backend;
mod forward;
mod http;
mod options;

pub use executor::LocalExecutor;
pub(crate) use file_backend::LocalFileBackend;
pub use options::LocalOptions;
