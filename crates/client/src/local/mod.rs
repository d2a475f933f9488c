//! Local executor: runs processes of this program in an engine with a single private session.
//!
//! - [`executor`]: the executor and its table of processes
//! - [`process`]: controls one process, and moves its events from the engine into the client's log
//! - [`files`], [`watches`], [`http`]: files of this host, and requests made from it

mod executor;
mod files;
mod http;
mod options;
mod process;
mod watches;

pub use executor::LocalExecutor;
pub(crate) use files::LocalFileBackend;
pub use options::LocalOptions;
