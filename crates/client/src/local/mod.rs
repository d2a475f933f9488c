//! The place that is this program: an engine of its own, with one session that
//! nobody else knows. [`cabinet`] has the files of the machine it is on.

mod cabinet;
mod confinement;
mod host;
mod http;
mod listing;
mod options;
mod place;
mod pump;
mod refusal;
mod reins;
mod terms;

pub(crate) use cabinet::LocalCabinet;
pub use options::LocalOptions;
pub use place::Local;
