//! Binds a policy to this host's paths: from a policy to a plan.
//!
//! A plan is a function of the policy, the child's environment and a [`FileSystemView`], so tests
//! use imaginary file systems.
//!
//! The steps: `binding` turns entries into paths, `resolve` follows symbolic links, `pattern`,
//! `pattern_matcher` and `scan` find the matches of patterns, and `planner` collects the rules in a
//! `table`. The planner also adds rules that no entry asks for:
//!
//! - Outpost's own files become read-only or hidden (`own_paths`).
//! - Protected names below writable roots become read-only, whether they exist or not.
//! - A path that doesn't exist and isn't writable is masked at its first missing component.
//! - An entry behind a directory that the server's user can't enter applies to that directory
//!   (`unreachable`).
//! - The directories between a writable root and a rule below it are **pinned**: each becomes a
//!   rule of its own, which enforcement turns into a mount point, so that it can't be renamed.
//!   Otherwise a process could rename the parent of a denied path, and the next process would find
//!   another file at that path.
//!
//! A symbolic link on the way to a path is followed unless a sandboxed process may have created it:
//! one of this plan, an earlier one ([`GrantedRoots`]), or another user's.

mod binding;
mod error;
mod file_system;
mod pattern;
mod pattern_matcher;
mod planner;
mod resolve;
mod scan;
mod table;
mod unreachable;
mod writable_history;

#[cfg(test)]
mod tests;

pub(crate) use binding::EACH_PROJECT_ROOT;
pub use error::{FailureKind, PlanError};
pub use file_system::{FileSystemView, HostFileSystem, LinkCreator, PathKind};
pub use planner::{OwnPath, PROTECTED, PlanLimits, ProcessDirectories, ServerPaths, plan};
pub use writable_history::GrantedRoots;
