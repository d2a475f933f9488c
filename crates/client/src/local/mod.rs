//! The place that is this program: an engine of its own, with one session that
//! nobody else knows.

mod confinement;
mod host;
mod listing;
mod options;
mod place;
mod pump;
mod refusal;
mod reins;

pub use options::LocalOptions;
pub use place::Local;
