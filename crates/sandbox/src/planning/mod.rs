//! From a policy to a plan: what was asked for in portable terms, bound to the paths of this host.
//!
//! All of it is a function of the policy, of the child's environment and of a [`View`] of the file
//! system, so it is tested with trees that never existed.
//!
//! The steps, each in a file of its own: `binding` turns entries into paths, `resolve` follows
//! symbolic links, `pattern`, `walk` and `scan` find what patterns match, and `planner` puts it together in
//! a `table` that knows which rule decides. Four things happen there that no entry asks for:
//!
//! - Protected names under writable roots become read-only, whether they exist or not.
//! - What doesn't exist and may not be written is masked at the first component that is missing.
//! - What lies in a directory that lets us no further is kept at that directory (`closed`).
//! - The directories between a writable root and a rule below it are **pinned**: each is a rule of its
//!   own, which the enforcement makes a mount point, so that none of them can be renamed. Otherwise
//!   a process could move the hole's parent aside, and the next one would find another path there.

mod binding;
mod braces;
mod closed;
mod error;
mod host;
mod minimal;
mod pattern;
mod planner;
mod resolve;
mod scan;
mod table;
mod view;
mod walk;

#[cfg(test)]
mod tests;

pub use error::{Failing, PlanError};
pub use host::Host;
pub use planner::{Bounds, Child, plan};
pub use view::{Kind, View};
