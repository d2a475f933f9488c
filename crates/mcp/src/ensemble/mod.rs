//! All configured servers together.
//!
//! Each is a [`member`] with a task of its own, which starts it, says how it
//! stands and starts it again when it has ended, as often as [`revival`] allows.
//! [`ensemble`] is what callers hold.

#[expect(
    clippy::module_inception,
    reason = "the ensemble is the noun of this room"
)]
mod ensemble;
mod member;
mod revival;
mod status;

pub use ensemble::{Ensemble, Launchers};
pub use status::Status;
